import { readdirSync } from 'node:fs'
import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'

const folder = new URL('../../packages/contract/src/limits/', import.meta.url)

test('every file of bounds is part of the limits, and no bound hides another one of its name', async () => {
  const files: object[] = await Promise.all(
    readdirSync(folder).map((file) => import(new URL(file, folder).href)),
  )
  const bounds = files.flatMap((file) => Object.values(file)).flatMap((one) => Object.entries(one))
  expect(bounds.length).toBe(new Set(bounds.map(([name]) => name)).size)
  expect(Object.fromEntries(bounds)).toEqual(limits)
})
