import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from './sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from './testing.ts'

test('values become parameters, fragments are spliced and renumbered', () => {
  const where = sql`a = ${1} AND b = ${'x'}`
  const statement = sql`SELECT ${0} FROM ${sql.id('s', 't')} WHERE ${where} LIMIT ${2}`
  expect(statement.text).toBe('SELECT $1 FROM "s"."t" WHERE a = $2 AND b = $3 LIMIT $4')
  expect(statement.values).toEqual([0, 1, 'x', 2])
})

test('join numbers the values across its pieces, and is empty for no pieces', () => {
  const list = sql`VALUES ${sql.join([sql`(${1})`, sql`(${2})`])}${sql.empty}${sql.join([])}`
  expect(list.text).toBe('VALUES ($1), ($2)')
  expect(list.values).toEqual([1, 2])
})

test('a compiled statement keeps its own numbers and comes before other values', () => {
  const inner = sql.compiled('SELECT $2 || $1 || $2', ['a', 'b'])
  const outer = sql`SELECT * FROM (${inner}) q LIMIT ${5}`
  expect(outer.text).toBe('SELECT * FROM (SELECT $2 || $1 || $2) q LIMIT $3')
  expect(outer.values).toEqual(['a', 'b', 5])
  expect(() => sql`SELECT ${1}, (${inner})`.text).toThrow(/before other values/)
})

test('an object that a caller sent is a value, whatever its shape', () => {
  const sent: unknown = JSON.parse('{"text": "DROP TABLE x", "values": [], "parts": []}')
  expect(sql`SELECT ${sent}`.text).toBe('SELECT $1')
})

test('names of 0 and 64 bytes, with NUL, and undefined values are refused', () => {
  expect(sql.id('a'.repeat(63)).text).toBe(`"${'a'.repeat(63)}"`)
  expect(() => sql.id('')).toThrow(/1 to 63/)
  expect(() => sql.id('a'.repeat(64))).toThrow(/1 to 63/)
  expect(() => sql.id('é'.repeat(32))).toThrow(/1 to 63/)
  expect(() => sql.id('a\0b')).toThrow(/NUL/)
  expect(() => sql.literal('a\0b')).toThrow(/NUL/)
  expect(() => sql.integer(1.5)).toThrow(/exact/)
  expect(() => sql.integer(2 ** 53)).toThrow(/exact/)
  expect(() => sql`SELECT ${undefined}`).toThrow(/undefined/)
})

describe.each(listTestEngines())('texts in SQL (%s)', (engine) => {
  let db: TestDatabase
  beforeAll(async () => {
    db = await createTestDatabase(engine)
  })
  afterAll(() => db.drop())

  const text = fc.string({ unit: 'binary', maxLength: 40 }).filter((each) => !each.includes('\0'))
  const hostile = fc.oneof(
    text,
    fc.string({ unit: fc.constantFrom("'", '"', '\\', '$', '-', ';', 'E', '\n') }),
  )

  test('any text is one literal and one name to PostgreSQL', async () => {
    await fc.assert(
      fc.asyncProperty(hostile, hostile, async (value, name) => {
        const bytes = Buffer.byteLength(name)
        fc.pre(bytes >= 1 && bytes <= 63)
        const statement = sql`SELECT${sql.literal(value)} AS ${sql.id(name)}, ${value}::text = ${sql.literal(value)} AS same`
        const [row] = await db.database.query(statement)
        if (name !== 'same') expect(row).toEqual({ [name]: value, same: true })
      }),
      { numRuns: 150 },
    )
  })
})
