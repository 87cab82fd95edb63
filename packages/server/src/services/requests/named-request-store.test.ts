import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { buildCommitNoteTables } from '../../chain/commit-notes.ts'
import type { Queryable } from '../../database/database.ts'
import type { Row } from '../../database/send-query.ts'
import { sql } from '../../database/sql.ts'
import { createTestDatabase } from '../../database/testing.ts'
import {
  buildNamedApplicationColumn,
  buildNamedRequestTables,
  findNamedRequest,
  insertNamedRequest,
  keepNamedAnswer,
} from './named-request-store.ts'

const KiB = 1024

test('an answer of megabytes is read whole, and never at once; none and an empty one stay apart', async () => {
  const { database, drop } = await createTestDatabase()
  try {
    await database.execute(sql`CREATE SCHEMA operations`)
    const tables = [buildCommitNoteTables, buildNamedRequestTables, buildNamedApplicationColumn]
    for (const statement of tables.flatMap((build) => build())) await database.execute(statement)
    const sizes: number[] = []
    const watched: Queryable = {
      ...database,
      query: async <R extends Row>(...asked: Parameters<Queryable['query']>) => {
        const rows = await database.query<R>(...asked)
        for (const value of rows.flatMap((row) => Object.values(row)))
          if (Buffer.isBuffer(value)) sizes.push(value.length)
        return rows
      },
    }
    const answers = [undefined, Buffer.alloc(0), randomBytes(3), randomBytes(2500 * KiB)]
    for (const [at, answer] of answers.entries()) {
      const row = { id: `id ${at}`, owner: 'o', app: null, request_hash: 'h', holder: 'me' }
      await insertNamedRequest(database, { ...row, expires_at_ms: 7n })
      if (answer !== undefined) await keepNamedAnswer(database, row, answer)
      expect(await findNamedRequest(watched, row.id)).toEqual({
        ...{ ...row, expires_at_ms: 7n, isNoted: false },
        answer: answer ?? null,
      })
    }
    expect(await findNamedRequest(watched, 'another')).toBeUndefined()
    expect(Math.max(...sizes)).toBeLessThanOrEqual(256 * KiB)
  } finally {
    await drop()
  }
})
