import { describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

type Sent = { readonly text: string; readonly connection: object }

/** Records the statements that the service sends while it does a bit of everything, for two applications at once. */
async function record(service: TestService): Promise<readonly Sent[]> {
  const sent: Sent[] = []
  const { database, queryRunner } = service.running.service
  const stops = [database, queryRunner.database].map((one) =>
    one.observe((text, connection) => sent.push({ text, connection })),
  )
  await Promise.all([work(service), work(service)])
  await service.running.service.tenants.announceHeads()
  for (const stop of stops) stop()
  return sent
}

async function work(service: TestService): Promise<void> {
  const app = await createData(service)
  await app.create({ name: 'notes', schema_definition: { fields: { a: { index: true } } } })
  await app.call('POST', '/indexes', {
    collection: 'notes',
    field_name: 'u',
    unique_constraint: true,
  })
  for (const fields of [['a', 'b'], ['c']])
    await app.call('POST', '/indexes', {
      collection: 'plain',
      fields,
      index_type: fields.length > 1 ? 'composite' : 'hash',
    })
  for (const more of [{ index_type: 'fulltext' }, { where: { d: { gt: 1 } }, sparse: true }])
    await app.call('POST', '/indexes', { collection: 'plain', field_name: 'd', ...more })
  const perValue = {
    select: ['a'],
    group_by: ['a'],
    aggregate: { n: { $count: '*' }, most: { $max: 'u' } },
  }
  for (const refresh_mode of ['live', 'lazy'])
    await app.call('POST', '/views', {
      name: `by_a_${refresh_mode}`,
      source_collections: ['notes'],
      query: perValue,
      refresh_mode,
    })
  for (let round = 0; round < 5; round++) {
    await Promise.all([
      app.store('notes', [
        { id: 'x', u: round },
        { id: 'y', u: 1, deleted: round === 3 },
      ]),
      app.store(
        'plain',
        Array.from({ length: 60 }, (_, at) => ({ id: `${at}`, a: round })),
      ),
      app.store('new', [{ id: `n${round}` }], { strict: true }),
    ])
  }
  await app.call('POST', '/views/by_a_lazy/refresh')
  await app.list('by_a_lazy', { sortBy: 'n', limit: 2 })
  await app.call('DELETE', '/views/by_a_live')
  const queries = [
    { find: { a: { gt: 1 }, b: { isNull: true } }, sortBy: 'a', limit: 3 },
    { find: { or: [{ c: { startsWith: 'x' } }, { c: { in: ['a', 1] } }] }, select: { a: true } },
    { include_history: true, find: { ip: { isLocalIp: true } } },
  ]
  for (const query of queries) {
    await app.list('plain', query)
    await app.call('POST', '/collections/plain/explain', { query })
  }
  await app.call('POST', '/collections/plain/indexes/plain_c_idx/rebuild')
  await app.call('GET', '/collections/plain/indexes/plain_c_idx/status')
  for (const part of ['', '/history', '/proof']) await app.record('notes', 'x', part)
  await app.call('PUT', '/pricing', {
    rules: [{ target: { collection: 'plain' }, operation: 'read', model: 'per_row', amount: '10' }],
  })
  for (const path of [
    '/stats',
    '/tasks',
    '/keys',
    '/collections',
    '/chain/consistency?from=1&to=5',
    '/collections/plain/preview',
  ])
    await app.call('GET', path)
  await app.call('POST', '/keys', {})
  await app.call('DELETE', '/indexes/notes_u_index')
  await app.call('DELETE', '/collections/notes')
  await app.listOpenly('plain', { limit: 1 })
  await service.request('GET', '/ready')
}

/** Removes quoted strings from the texts, as they may contain anything. */
function plain(text: string): string {
  return text
    .replace(/\bE?'(?:[^'\\]|''|\\.)*'/g, "''")
    .replace(/\s+/g, ' ')
    .trim()
}

/** Names after the words that introduce a table, and are not schema.table, a sub-query, a function or a WITH name. */
function unqualified(text: string): string[] {
  const own = new Set(
    [
      ...text.matchAll(
        /(?:WITH|,)\s+"?(\w+)"?\s*(?:\([^)]*\))?\s+AS\s+(?:NOT\s+)?(?:MATERIALIZED\s*)?\(/gi,
      ),
    ].map(([, name]) => name),
  )
  const named = [
    ...text.matchAll(
      /\b(?:FROM|JOIN|INTO|(?<!\bFOR )UPDATE|TABLE(?: IF (?:NOT )?EXISTS)?)\s+(?!SET\b)("?\w+"?(?:\."?\w+"?)?)(\s*\()?/gi,
    ),
  ]
  return named.flatMap(([all, name = '', call]) => {
    if (name.includes('.') || own.has(name.replaceAll('"', ''))) return []
    if (call !== undefined && !/^(INTO|UPDATE|TABLE)/i.test(all)) return []
    return /^(ROWS|LATERAL|UNNEST|ONLY)$/i.test(name) || /\b(IS|DISTINCT)\s*$/i.test(all)
      ? []
      : [all]
  })
}

const isWrite = (text: string) =>
  /^\s*(WITH\b.*\b)?(INSERT|UPDATE|DELETE|CREATE|DROP|ALTER)\b/is.test(text)
const listSchemas = (text: string) => new Set(text.match(/\bapp_\d+\b|\bsystem(?="?\.)/g) ?? [])

describe('the statements that the service sends to its database', () =>
  withService((service) => {
    test.each([
      'SELECT a FROM c_1',
      'SELECT a FROM app_1.c_1 AS x JOIN c_2 ON true',
      'INSERT INTO c_1 (a) VALUES ($1)',
      'WITH fresh AS (SELECT 1) UPDATE c_1 SET a = 1 FROM fresh',
      'CREATE TABLE c_1 (a int8)',
      'DELETE FROM "c_1" WHERE a = 1',
    ])('the check itself finds a table without its schema: %s', (text) => {
      expect(unqualified(text)).toHaveLength(1)
    })

    test('the check itself takes a lock of rows for no table', () => {
      expect(unqualified('SELECT a FROM app_1.c_1 FOR UPDATE SKIP LOCKED')).toEqual([])
    })

    test('every statement keeps the rules of Citus', async () => {
      const sent = await record(service())
      expect(sent.length).toBeGreaterThan(200)
      const texts = [...new Set(sent.map(({ text }) => plain(text)))]
      for (const text of texts) {
        expect(unqualified(text), text).toEqual([])
        expect(text).not.toMatch(
          /\b(now|random|clock_timestamp|statement_timestamp|gen_random_uuid)\s*\(|\bcurrent_(timestamp|date|time)\b/i,
        )
        expect(text).not.toMatch(/\bSELECT\s+\*/i)
        expect(text).not.toMatch(
          /\b(LISTEN|NOTIFY|LOCK TABLE|MERGE INTO|TRIGGER|INHERITS|REFERENCES|FOREIGN KEY)\b|pg_\w*advisory|tableoid|reltuples/i,
        )
        // The size limit of views (view-sizes.ts) documents that it does not reach tables that Citus has
        // distributed.
        expect(text).not.toMatch(/pg_\w*relation_size\((?!class\.oid\))/i)
        // A transaction begins with its settings, which the workers never see.
        const statement = text.replace(/^(BEGIN[^;]*)(; SET LOCAL \w+ = \w+)+$/, '$1')
        expect(statement, 'one statement per call').not.toMatch(/;\s*\S/)
        if (/^CREATE (UNLOGGED )?TABLE/i.test(text))
          expect(text).toMatch(/CONSTRAINT "?\w+"? PRIMARY KEY/i)
        if (/^CREATE (UNIQUE )?INDEX/i.test(text))
          expect(text).toMatch(/INDEX (CONCURRENTLY )?(IF NOT EXISTS )?"?\w+"? ON /i)
        if (/ON CONFLICT .* DO UPDATE SET/i.test(text)) {
          const [set] = text.slice(text.search(/DO UPDATE SET/i)).split(/\bRETURNING\b/i)
          expect(set, 'what follows DO UPDATE SET is immutable').not.toMatch(
            /\b(SELECT|to_jsonb|concat|format|extract)\b/i,
          )
        }
      }
    })

    test('a statement, and a transaction that writes, stays within one application', async () => {
      const sent = await record(service())
      const open = new Map<object, string[]>()
      let transactions = 0
      const judge = (statements: readonly string[]) => {
        const schemas = new Set(statements.flatMap((text) => [...listSchemas(text)]))
        if (statements.some(isWrite))
          expect(schemas.size, statements.join(';\n')).toBeLessThanOrEqual(1)
      }
      for (const { text, connection } of sent) {
        const words = plain(text)
        const current = open.get(connection)
        expect(listSchemas(words).size, words).toBeLessThanOrEqual(1)
        if (/^BEGIN/i.test(words)) open.set(connection, [])
        else if (/^(COMMIT|ROLLBACK)/i.test(words)) {
          judge(current ?? [])
          open.delete(connection)
          transactions += 1
        } else if (current === undefined) judge([words])
        else current.push(words)
      }
      expect(transactions).toBeGreaterThan(20)
    })

    test('every table in the database has a named primary key, no foreign keys and no triggers', async () => {
      await record(service())
      const tables = await service().database.query<{ name: string; keys: bigint }>(sql`
        SELECT tables.table_schema || '.' || tables.table_name AS name,
          (SELECT count(*) FROM information_schema.table_constraints AS held
            WHERE held.table_schema = tables.table_schema AND held.table_name = tables.table_name
              AND held.constraint_type = 'PRIMARY KEY') AS keys
        FROM information_schema.tables AS tables
        WHERE tables.table_schema NOT IN ('pg_catalog', 'information_schema')`)
      expect(tables.length).toBeGreaterThan(20)
      expect(tables.filter(({ keys }) => keys !== 1n)).toEqual([])
      const refused = await service().database.query(sql`
        SELECT conname FROM pg_catalog.pg_constraint WHERE contype = 'f'
        UNION ALL SELECT tgname FROM pg_catalog.pg_trigger`)
      expect(refused).toEqual([])
    })
  }))
