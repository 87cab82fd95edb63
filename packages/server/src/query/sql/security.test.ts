import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../../base/fault.ts'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../../database/testing.ts'
import { findPassedBound } from '../run-bound.ts'
import {
  createTestCollection,
  createTestSchema,
  type RunSql,
} from '../test-collection.test-support.ts'
import { accepted } from './accepted.test-data.ts'
import { refused } from './refused.test-data.ts'
import { recursiveStatements, rowStatements } from './rows.test-data.ts'
import { declaredShapes, shapes } from './shapes.test-data.ts'
import { makeQueryRunner } from './test-sql.test-support.ts'

const statements = [
  ...accepted,
  ...shapes,
  ...rowStatements,
  ...recursiveStatements,
  ...declaredShapes,
  ...refused.map(([text]) => text),
].filter((text) => text.length > 1)
const splitTokens = (text: string): readonly string[] =>
  text.match(
    /'(?:[^']|'')*'|"[^"]*"|[A-Za-z_]\w*(?:\.\w+)*|\d+(?:\.\d+)?|::|<=|>=|<>|!=|\|\||\S/g,
  ) ?? []
const tokens = statements.flatMap(splitTokens)

/** A statement with some of its words left out, changed, or put in from another one. */
const mutated = fc
  .tuple(
    fc.constantFrom(...statements),
    fc.array(
      fc.record({
        at: fc.nat(60),
        dropped: fc.nat(2),
        put: fc.oneof(
          fc.array(fc.constantFrom(...tokens), { maxLength: 2 }),
          fc
            .tuple(fc.constantFrom(...statements), fc.nat(30), fc.nat(6))
            .map(([text, from, count]) => splitTokens(text).slice(from, from + count)),
        ),
      }),
      { minLength: 1, maxLength: 2 },
    ),
  )
  .map(([text, edits]) => {
    const words = [...splitTokens(text)]
    for (const { at, dropped, put } of edits) words.splice(at % words.length, dropped, ...put)
    return words.join(' ').replaceAll(' :: ', '::')
  })

/** Resource limits of PostgreSQL, and its errors of values that are too large; never of syntax, names or types. */
const ofValues = /^(22003|22008|54|57014|53)/

describe.each(listTestEngines())('%s: SQL of any kind', (engine) => {
  let test: TestDatabase
  let run: RunSql

  beforeAll(async () => {
    test = await createTestDatabase(engine)
    run = (text, values = []) => test.database.query(sql.compiled(text, values))
    await createTestSchema(run, 'app')
    const body =
      '{"id":1,"order_id":1,"customer":"c1","amount":5,"status":"open","at":"2024-01-01"}'
    for (const name of ['orders', 'customers', 'items'])
      await createTestCollection(run, `app.${name}`, [{ body }, { body: '{"id":"x"}' }])
  })
  afterAll(async () => test?.drop())

  it('a statement is refused with 400 or answered, and PostgreSQL never finds a mistake in it', async () => {
    const { ask } = makeQueryRunner(run)
    const answer = async (text: string): Promise<void> => {
      try {
        await ask(text, { parameters: [1, 'a', true] })
      } catch (error) {
        if (error instanceof Fault) {
          expect(error.code).toBe('VALIDATION_FAILED')
          return
        }
        // A mutation may take the end of a recursion away.
        if (findPassedBound(error) !== undefined) return
        const code = error instanceof Error && 'code' in error ? String(error.code) : ''
        const isUnknownTable = code === '42P01'
        if (!isUnknownTable && !ofValues.test(code)) throw error
      }
    }
    await fc.assert(fc.asyncProperty(mutated, answer), { numRuns: 1_500 })
  })
})
