import { expect, test } from 'vitest'
import { countBytes, makeBytes, makeFieldBytes, renameFields, sumBytes } from './bytes.ts'

const makeFields = (count: number) =>
  Array.from({ length: count }, (_, at) =>
    makeFieldBytes({ record: 1, path: [`f${at}`], most: 100 }),
  )

test('the fields of a record count together, those of two rows apart, and a part of a field within it', () => {
  const fields = sumBytes([...makeFields(3), makeBytes(7)])
  expect(countBytes(fields)).toBe(107)
  expect(countBytes(sumBytes([fields, fields]))).toBe(214)
  expect(countBytes(sumBytes([fields, renameFields(fields, 2)]))).toBe(214)
  const part = makeFieldBytes({ record: 1, path: ['f0', 'a'], most: 100 })
  const other = makeFieldBytes({ record: 1, path: ['f0', 'b'], most: 100 })
  expect(countBytes(sumBytes([fields, part, other]))).toBe(207)
})

test('64 fields are told apart, and more count as one number, so that no statement takes long to measure', () => {
  expect(sumBytes(makeFields(64)).fields.get(1)?.size).toBe(64)
  expect(sumBytes(makeFields(65))).toEqual(makeBytes(100))
})
