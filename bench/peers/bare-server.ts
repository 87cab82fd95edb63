import type { IncomingMessage } from 'node:http'
import { Pool, type QueryConfig } from 'pg'
import { type BareConfig, type BareQuery, makeListValues } from './bare-config.ts'
import { serve } from './serve.ts'

/**
 * The fastest plain server for the same work: node:http, a pool of pg, prepared statements, nothing else. No
 * validation, no keys, no proofs, no versions: what is left is what any server in this language must pay.
 */
const config: BareConfig = JSON.parse(process.argv[2] ?? '{}')
const pool = new Pool({ ...config.connection, max: config.poolSize })
/** The log position that our server gives each record; it grows over restarts as well. */
let leaves = Date.now() * 1000

serve(answer)

function answer(request: IncomingMessage, body: string): Promise<string> {
  const json = JSON.parse(body)
  if (request.url === '/list') return list(json)
  if (request.url === '/query') return query(json)
  return json.data.length === 1 ? storeOne(json) : storeMany(json)
}

function list(request: unknown): Promise<string> {
  return page({
    name: 'list',
    text: config.list?.text ?? '',
    values: makeListValues(config, request),
  })
}

function query({ name, values }: BareQuery): Promise<string> {
  return page({ name, text: config.statements?.[name] ?? '', values: [...values] })
}

async function page(statement: QueryConfig): Promise<string> {
  const { rows } = await pool.query(statement)
  const [page] = rows
  // A statement made by hand returns no log position.
  const asOf = page.height && `,"as_of":{"block_height":${page.height},"sequence":${page.sequence}}`
  return `{"records":[${page.records}],"total":${page.total}${asOf ?? ''}}`
}

type Store = { root: string; data: { id: string }[] }

const columns = 'leaf, height, sequence, key, deleted, superseded_by, data, body'

/** A single statement is one transaction. */
async function storeOne({ root, data }: Store): Promise<string> {
  const [record] = data
  const text = JSON.stringify(record)
  await pool.query({
    name: `one ${root}`,
    text: `INSERT INTO ${toTable(root)} (${columns}) VALUES ($1, 1, 0, $2, false, NULL, $3, $4)`,
    values: [leaves++, record?.id, text, text],
  })
  return '{"stored":1}'
}

/**
 * This form is the fastest of those tried: one parameter that the database takes apart, not an array for each
 * column.
 */
async function storeMany({ root, data }: Store): Promise<string> {
  const first = leaves
  leaves += data.length
  await pool.query({
    name: `many ${root}`,
    text: `INSERT INTO ${toTable(root)} (${columns})
      SELECT $1::int8 + at, 1, at::int4, item ->> 'id', false, NULL, item::jsonb, item::text
      FROM json_array_elements($2::json) WITH ORDINALITY AS fresh (item, at)`,
    values: [first - 1, JSON.stringify(data)],
  })
  return `{"stored":${data.length}}`
}

/** `app::name` is the table of that name. */
function toTable(root: string): string {
  return `bare.${root.slice(root.indexOf('::') + 2)}`
}
