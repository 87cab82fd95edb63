import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../database/testing.ts'
import { auditChain } from './audit-chain.ts'
import { createTestChain, makeEntries, type TestChain } from './testing.ts'

let shared: TestDatabase
let chain: TestChain
beforeAll(async () => {
  shared = await createTestDatabase()
  chain = await createTestChain(shared.database)
  const producer = await chain.open()
  await producer.append(makeEntries('a', 'b', 'c'))
  await Promise.all([
    producer.append(makeEntries('d')),
    producer.append(makeEntries('e', 'f')),
    producer.append(makeEntries('g')),
  ])
  await producer.append(makeEntries(...Array.from({ length: 300 }, (_, index) => `body ${index}`)))
  await producer.append(makeEntries('h'))
  await producer.close()
})
afterAll(() => shared.drop())

const whole = { ok: true, blocks: 4, entries: 308 }

describe('the audit', () => {
  test('the audit finds nothing on a chain as it was written, and says how far it is', async () => {
    const heights: number[] = []
    const report = await audit(({ height }) => heights.push(height))
    expect(report).toMatchObject(whole)
    expect(heights).toEqual([4])
  })

  const bytes = [
    { column: 'header', what: /header|origin|previous hash|signature/ },
    { column: 'signature', what: /header signature/ },
    { column: 'body', what: /body|leaf hash|leaf_hashes length/ },
    { column: 'leaf_hashes', what: /leaf hash/ },
  ]
  describe.each(bytes)('bit flips in $column', ({ column, what }) => {
    test.each([0, 0.3, 0.77, 0.9999])(
      'the audit names block 2 for a bit flipped at %d of its length',
      async (part) => {
        const block = sql.id(chain.schema, 'block')
        const name = sql.id(column)
        const flip = sql`UPDATE ${block} SET ${name} = set_bit(${name},
        floor(${part}::float8 * octet_length(${name}) * 8)::int8,
        1 - get_bit(${name}, floor(${part}::float8 * octet_length(${name}) * 8)::int8)) WHERE height = 2`
        await expectDifference(flip, { height: 2, what: expect.stringMatching(what) })
      },
    )
  })

  test.each([0, 5, 30])(
    'the audit names block 2 for bit %d of first_leaf, entry_count and each group start',
    async (bit) => {
      const block = sql.id(chain.schema, 'block')
      const mask = 2 ** bit
      const flips = [
        {
          what: 'first_leaf',
          flip: sql`UPDATE ${block} SET first_leaf = first_leaf # ${mask}::int8 WHERE height = 2`,
        },
        {
          what: 'entry_count',
          flip: sql`UPDATE ${block} SET entry_count = entry_count # ${mask}::int4 WHERE height = 2`,
        },
        {
          what: 'group_starts',
          flip: sql`UPDATE ${block} SET group_starts[1] = group_starts[1] # ${mask}::int4 WHERE height = 2`,
        },
        {
          what: 'group_starts',
          flip: sql`UPDATE ${block} SET group_starts[2] = group_starts[2] # ${mask}::int4 WHERE height = 2`,
        },
        {
          what: 'height',
          flip: sql`UPDATE ${block} SET height = height # ${2 ** (bit + 8)}::int8 WHERE height = 2`,
        },
      ]
      for (const { what, flip } of flips) await expectDifference(flip, { height: 2, what })
    },
  )

  test('the audit names the entry whose leaf hash differs', async () => {
    const block = sql.id(chain.schema, 'block')
    const flip = sql`UPDATE ${block} SET leaf_hashes = set_byte(leaf_hashes, 2 * 32 + 5, 255 - get_byte(leaf_hashes, 2 * 32 + 5)) WHERE height = 2`
    await expectDifference(flip, { height: 2, sequence: 2, what: 'leaf hash' })
  })

  test('the audit names a tile that differs, is missing, or is one too many', async () => {
    const tile = sql.id(chain.schema, 'tile')
    const what = 'tile 0 of level 0'
    for (const place of [0, 4_000, 8_191]) {
      await expectDifference(
        sql`UPDATE ${tile} SET hashes = set_byte(hashes, ${place}::int4, 255 - get_byte(hashes, ${place}::int4))`,
        { height: 3, what },
      )
    }
    await expectDifference(sql`UPDATE ${tile} SET level = 1`, { height: 3, what })
    await expectDifference(sql`UPDATE ${tile} SET index = 1`, { height: 3, what })
    await expectDifference(sql`DELETE FROM ${tile}`, { height: 3, what, found: 'none' })
    await expectDifference(
      sql`INSERT INTO ${tile} (level, index, hashes) SELECT 0, 1, hashes FROM ${tile}`,
      { what: 'tiles of level 0' },
    )
  })

  test('the audit names a watermark that no block has, and blocks that are missing', async () => {
    const watermark = sql.id(chain.schema, 'watermark')
    const block = sql.id(chain.schema, 'block')
    await expectDifference(sql`UPDATE ${watermark} SET height = 9`, { what: 'watermark' })
    await expectDifference(sql`UPDATE ${watermark} SET height = -4`, { what: 'watermark' })
    await expectDifference(sql`UPDATE ${watermark} SET leaf = leaf + 1`, { what: 'watermark leaf' })
    await expectDifference(sql`UPDATE ${watermark} SET sequence = sequence + 1`, {
      what: 'watermark sequence',
    })
    await expectDifference(sql`DELETE FROM ${block} WHERE height = 1`, {
      height: 1,
      what: 'height',
      expected: '1',
      found: '2',
    })
    await expectDifference(sql`DELETE FROM ${block} WHERE height = 4`, { what: 'watermark' })
  })

  test('the audit refuses a chain that another key has signed, or that belongs elsewhere', async () => {
    const { options } = await createTestChain(shared.database)
    const vkey = options.signer.vkey
    const found = await auditChain(shared.database, chain.schema, {
      origin: chain.options.origin,
      vkey,
    })
    expect(found).toMatchObject({ ok: false, difference: { height: 1, what: 'header signature' } })
    const elsewhere = await auditChain(shared.database, chain.schema, {
      origin: 'data.example/other',
      vkey: chain.options.signer.vkey,
    })
    expect(elsewhere).toMatchObject({ ok: false, difference: { height: 1, what: 'header origin' } })
  })

  test('a damaged end is not opened for writing', async () => {
    const block = sql.id(chain.schema, 'block')
    const flip = sql`UPDATE ${block} SET leaf_hashes = set_byte(leaf_hashes, 31, 255 - get_byte(leaf_hashes, 31)) WHERE height = 4`
    await damaged(flip, () =>
      expect(chain.open()).rejects.toThrow('its tree is not that of block 4'),
    )
  })
})

function audit(onProgress: (progress: { height: number }) => void = () => undefined) {
  const { origin, signer } = chain.options
  return auditChain(shared.database, chain.schema, { origin, vkey: signer.vkey, onProgress })
}

async function expectDifference(damage: ReturnType<typeof sql>, difference: object): Promise<void> {
  await damaged(damage, async () =>
    expect(await audit(), damage.text).toMatchObject({ ok: false, difference }),
  )
}

/** Keeps a copy of the tables, does the damage, and puts them back as they were. */
async function damaged(
  damage: ReturnType<typeof sql>,
  look: () => Promise<unknown>,
): Promise<void> {
  const { database } = shared
  const tables = ['block', 'tile', 'watermark']
  for (const table of tables)
    await database.execute(
      sql`CREATE TABLE ${sql.id(chain.schema, `${table}_kept`)} AS TABLE ${sql.id(chain.schema, table)}`,
    )
  try {
    expect(await database.execute(damage)).toBeGreaterThan(0)
    await look()
  } finally {
    for (const table of tables) {
      await database.execute(sql`DELETE FROM ${sql.id(chain.schema, table)}`)
      await database.execute(
        sql`INSERT INTO ${sql.id(chain.schema, table)} TABLE ${sql.id(chain.schema, `${table}_kept`)}`,
      )
      await database.execute(sql`DROP TABLE ${sql.id(chain.schema, `${table}_kept`)}`)
    }
  }
}
