import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { errors } from '@tollbase/contract/errors'
import { renderErrorsPage } from '@tollbase/contract/errors-page'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

describe('the error catalogue', () => {
  test('docs/errors.md is this catalogue; `npm run openapi` writes it anew', () => {
    expect(readFileSync(join(root, 'docs/errors.md'), 'utf8')).toBe(renderErrorsPage())
  })

  test('the catalogue has no code that the server never answers', () => {
    const sources = readdirSync(join(root, 'packages'), { recursive: true, encoding: 'utf8' })
      .filter((file) => /^(server|contract)\/src\/.*(?<!\.test)\.ts$/.test(file))
      .filter((file) => !file.endsWith('errors.ts'))
      .map((file) => readFileSync(join(root, 'packages', file), 'utf8'))
      .join('\n')
    const unused = Object.keys(errors).filter((code) => !sources.includes(`'${code}'`))
    expect(unused).toEqual([])
  })
})
