import { encodeHex } from '@tollbase/verify/bytes'
import { parseVerifierKey } from '@tollbase/verify/checkpoint'
import { BlockStore } from '../../chain/block-store.ts'
import { parseBlock } from '../../chain/parse-block.ts'
import type { Database, Queryable } from '../../database/database.ts'
import { listFreshStatements, toRecords } from '../../database/run-migrations.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import { buildDataSetTable } from '../../projections/data-set-table.ts'
import { serviceSecrets } from '../../services/identity/secrets.ts'
import type { ChainPlace } from '../maintenance.ts'
import { migrations } from '../migrations.ts'
import { headerRoot, headerSize } from './audit-anchors.ts'
import { auditCelestia } from './audit-celestia.ts'
import { compareStructure, type Part, readStructure } from './audit-structure.ts'
import { findWrongRow } from './find-wrong-row.ts'

type Difference = Readonly<Record<string, unknown>>

/** Reads the structure of the operational state's tables, as stored and as the migrations make them. */
export async function readOperationsStructure(
  database: Database,
): Promise<{ readonly stored: readonly Part[]; readonly expected: readonly Part[] }> {
  const stored = await readStructure(database, 'operations')
  const dataSets = stored.filter(
    ({ relation, part }) => part === 'kind' && /^data_set_[0-9a-f]{32}$/.test(relation),
  )
  const expected = await runUndone(database, async (tx) => {
    await tx.execute(sql`ALTER SCHEMA operations RENAME TO audited_operations`)
    for (const statement of listFreshStatements(migrations)) await tx.execute(statement)
    for (const { relation: table } of dataSets) {
      const isOfValues = stored.some((one) => one.relation === table && one.part === 'column value')
      const kind = isOfValues ? 'values' : 'cidr'
      await tx.execute(buildDataSetTable({ schema: 'operations', table, kind }))
    }
    return readStructure(tx, 'operations')
  })
  return { stored, expected }
}

class Undone extends Error {}

/** Returns the work's result and undoes its changes. */
async function runUndone<T>(database: Database, work: (tx: Queryable) => Promise<T>): Promise<T> {
  const results: T[] = []
  const end = database.transaction(async (tx) => {
    results.push(await work(tx))
    throw new Undone()
  })
  await end.catch((error: unknown) => {
    if (!(error instanceof Undone)) throw error
  })
  const [result] = results
  if (result === undefined) throw new Error('the work was not done')
  return result
}

/**
 * Audits the operational state, which the entries do not decide, as far as the program and the chains alone can
 * judge it.
 */
export async function auditOperations(
  database: Database,
  places: readonly ChainPlace[],
): Promise<Difference | undefined> {
  const { stored, expected } = await readOperationsStructure(database)
  const difference = compareStructure(stored, expected)
  if (difference !== undefined) return { ...difference, schema: 'operations' }
  return (await auditOperationsRows(database, places)) ?? auditCelestia(database, places)
}

/** Audits the rows of the operational state by the program and the chains alone. */
export async function auditOperationsRows(
  database: Database,
  places: readonly ChainPlace[],
): Promise<Difference | undefined> {
  for (const [table, statement] of [
    ...listOwnChecks(),
    ...(await listChainChecks(database, places)),
  ]) {
    const found = await findWrongRow(database, table, statement)
    if (found !== undefined) return found
  }
  return undefined
}

type TableCheck = readonly [table: string, statement: SqlStatement]

function listOwnChecks(): readonly TableCheck[] {
  const secrets = Object.values(serviceSecrets)
  const recorded = toRecords(migrations)
  return [
    [
      'operations.migration',
      sql`SELECT coalesce(one.id, known.id)::text AS row, 'id, name and checksum' AS field,
          concat_ws(' ', known.id, known.name, known.checksum) AS expected, concat_ws(' ', one.id, one.name, one.checksum) AS found
        FROM operations.migration AS one FULL JOIN unnest(${recorded.map(({ id }) => id)}::int4[],
          ${recorded.map(({ name }) => name)}::text[], ${recorded.map(({ checksum }) => checksum)}::text[]) AS known (id, name, checksum)
          ON known.id = one.id
        WHERE (one.name, one.checksum) IS DISTINCT FROM (known.name, known.checksum) ORDER BY 1 LIMIT 1`,
    ],
    [
      'operations.migration_lock',
      sql`SELECT id::text AS row, 'id' AS field, '1' AS expected, id::text AS found FROM operations.migration_lock WHERE id <> 1 LIMIT 1`,
    ],
    [
      'operations.service_secret',
      sql`SELECT secret.name AS row, 'value' AS field, coalesce(known.bytes || ' bytes', 'no such secret') AS expected,
          octet_length(secret.value) || ' bytes' AS found
        FROM operations.service_secret AS secret LEFT JOIN unnest(${secrets.map(({ name }) => name)}::text[],
          ${secrets.map(({ bytes }) => bytes)}::int4[]) AS known (name, bytes) ON known.name = secret.name
        WHERE known.bytes IS DISTINCT FROM octet_length(secret.value) ORDER BY 1 LIMIT 1`,
    ],
    [
      'operations.used_signature',
      sql`SELECT id AS row, 'id' AS field, 'an address and a digest' AS expected, id AS found FROM operations.used_signature
        WHERE id !~ '^0x[0-9a-f]{40}:[0-9a-f]{64}$' ORDER BY 1 LIMIT 1`,
    ],
    [
      'operations.named_request',
      sql`SELECT id AS row, 'id' AS field, 'an id, and a hash' AS expected, concat_ws(' ', id, request_hash) AS found
        FROM operations.named_request WHERE id !~ '^[0-9a-f]{32}$' OR request_hash !~ '^[0-9a-f]{64}$' ORDER BY 1 LIMIT 1`,
    ],
    [
      'operations.commit_note',
      sql`SELECT id AS row, 'id' AS field, 'an id' AS expected, id AS found
        FROM operations.commit_note WHERE id !~ '^[0-9a-f]{32}$' ORDER BY 1 LIMIT 1`,
    ],
    [
      'operations.network_pin',
      sql`SELECT network AS row, 'genesis_hash' AS field, 'a hash' AS expected, genesis_hash AS found FROM operations.network_pin
        WHERE genesis_hash !~ '^0x[0-9a-f]{64}$' OR network !~ '^[a-z0-9-]+:[A-Za-z0-9-]+$' ORDER BY 1 LIMIT 1`,
    ],
    [
      'operations.data_key',
      sql`SELECT concat_ws(' ', app, collection, epoch) AS row, 'wrapped' AS field, 'a wrapped key' AS expected,
          concat_ws(' ', master_key, octet_length(wrapped), 'bytes') AS found FROM operations.data_key
        WHERE NOT CASE WHEN master_key LIKE 'command:_%' THEN octet_length(wrapped) > 0
          ELSE octet_length(wrapped) = 60 AND master_key ~ '^[0-9a-f]{16}$' END OR epoch < 0 OR reserved < 0 ORDER BY 1 LIMIT 1`,
    ],
    [
      'operations.publication_day',
      sql`SELECT concat_ws(' ', network, day) AS row, 'bytes' AS field, '0 or more' AS expected, bytes::text AS found
        FROM operations.publication_day WHERE bytes < 0 OR day < 0 ORDER BY 1 LIMIT 1`,
    ],
    [
      'operations.signer_lease',
      sql`SELECT network || ' ' || signer AS row, 'signer' AS field, 'an address' AS expected, signer AS found
        FROM operations.signer_lease WHERE signer !~ '^0x[0-9a-f]{40}$' ORDER BY 1 LIMIT 1`,
    ],
  ]
}

/**
 * Checks that the pinned key is the one that all chains are signed with, that every producer of a block had a
 * lease, and that every lease belongs to a chain.
 */
async function listChainChecks(
  database: Database,
  places: readonly ChainPlace[],
): Promise<readonly TableCheck[]> {
  const keys = places.slice(0, 1).map(({ vkey }) => encodeHex(parseVerifierKey(vkey).publicKey))
  const epochs: number[] = []
  for (const { schema } of places) {
    const last = await new BlockStore(database, schema).last()
    epochs.push(last === undefined ? 0 : parseBlock(last).header.epoch)
  }
  return [
    [
      'operations.service_secret',
      sql`SELECT name AS row, 'value' AS field, key AS expected, encode(value, 'hex') AS found
        FROM operations.service_secret JOIN unnest(${keys}::text[]) AS known (key) ON encode(value, 'hex') <> key
        WHERE name = ${serviceSecrets.signingPublicKey.name}`,
    ],
    [
      'operations.publication',
      sql`SELECT concat_ws(' ', network, app, from_height, part) AS row, 'app' AS field, 'an application' AS expected, app AS found
        FROM operations.publication WHERE NOT app = ANY(${places.map(({ app }) => app)}::text[]) LIMIT 1`,
    ],
    ...places.map(checkPublications),
    [
      'operations.erasure',
      sql`SELECT erasure.chain AS row, 'chain' AS field, 'a chain' AS expected, erasure.chain AS found
        FROM operations.erasure AS erasure WHERE NOT erasure.chain = ANY(${places.map(({ schema }) => schema)}::text[]) LIMIT 1`,
    ],
    [
      'operations.scrub',
      sql`SELECT scrub.chain AS row, 'chain' AS field, 'a chain' AS expected, scrub.chain AS found
        FROM operations.scrub AS scrub WHERE NOT scrub.chain = ANY(${places.map(({ schema }) => schema)}::text[]) LIMIT 1`,
    ],
    [
      'operations.chain_lease',
      sql`SELECT coalesce(lease.chain, known.chain) AS row, 'epoch' AS field,
          coalesce(known.epoch || ' or later', 'no such chain') AS expected, lease.epoch::text AS found
        FROM operations.chain_lease AS lease FULL JOIN unnest(
          ${places.map(({ schema }) => schema)}::text[], ${epochs}::int8[]) AS known (chain, epoch) ON known.chain = lease.chain
        WHERE known.chain IS NULL OR coalesce(lease.epoch, 0) < known.epoch ORDER BY 1 LIMIT 1`,
    ],
  ]
}

/** Every chunk is of a tree that the application's log had at the end of its last block. */
function checkPublications({ app, schema }: ChainPlace): TableCheck {
  return [
    'operations.publication',
    sql`SELECT concat_ws(' ', sent.network, sent.app, sent.from_height, sent.part) AS row, 'size and root' AS field,
        concat_ws(' ', ${headerSize}, ${headerRoot}) AS expected, concat_ws(' ', sent.size, sent.root) AS found
      FROM operations.publication AS sent LEFT JOIN ${sql.id(schema, 'block')} AS block ON block.height = sent.to_height
      WHERE sent.app = ${app} AND ((${headerSize}, ${headerRoot}) IS DISTINCT FROM (sent.size::text, sent.root)
        OR sent.from_height NOT BETWEEN 1 AND sent.to_height OR sent.part NOT BETWEEN 0 AND sent.parts - 1) ORDER BY 1 LIMIT 1`,
  ]
}
