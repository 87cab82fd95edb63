import { expect, test } from 'vitest'
import { dropSchema } from './drop-schema.ts'
import { sql } from './sql.ts'
import { createTestDatabase } from './testing.ts'

test('a schema is dropped with all that is in it, also where it has more tables than are dropped at once, or is not there', async () => {
  const { database, drop } = await createTestDatabase()
  try {
    const count = async () => {
      const [row] = await database.query<{ count: bigint }>(
        sql`SELECT count(*) AS count FROM pg_catalog.pg_namespace WHERE nspname = 'passing'`,
      )
      return Number(row?.count)
    }
    await dropSchema(database, 'passing')
    await database.execute(sql`CREATE SCHEMA passing`)
    for (let n = 0; n < 401; n++)
      await database.execute(sql`CREATE TABLE ${sql.id('passing', `t_${n}`)} (id int8 PRIMARY KEY)`)
    await database.execute(sql`CREATE VIEW passing.v AS SELECT id FROM passing.t_1`)
    await database.execute(sql`CREATE TABLE passing.child (id int8 REFERENCES passing.t_400 (id))`)
    expect(await count()).toBe(1)
    await dropSchema(database, 'passing')
    expect(await count()).toBe(0)
  } finally {
    await drop()
  }
})
