import { type LoopbackNode, startLoopbackNode } from '@tollbase/testing/celestia/node'
import { computeCommitment } from '@tollbase/verify/celestia/commitment'
import { deriveNamespace } from '@tollbase/verify/celestia/namespace'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { noLog } from '../base/log.ts'
import { realWorld, type World } from '../base/world.ts'
import { sql } from '../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../database/testing.ts'
import { BlobJournal, buildCelestiaTables } from './blob-journal.ts'
import { BlobSender, SendProblem } from './blob-sender.ts'
import { openCelestiaNode } from './node.ts'

const network = 'cosmos:private'
const namespace = deriveNamespace('shop')
let store: TestDatabase
let chain: LoopbackNode
let sender: BlobSender
let serial = 0
/** The problems that were logged. */
let told: string[] = []
/** The real time of each, and what a test adds to it. */
let world: World & { readonly advance: (ms: number) => void }

beforeAll(async () => {
  store = await createTestDatabase()
  await store.database.execute(sql`CREATE SCHEMA operations`)
  for (const table of buildCelestiaTables()) await store.database.execute(table)
})
afterAll(() => store?.drop())
beforeEach(async () => {
  told = []
  let aheadMs = 0
  world = {
    ...realWorld,
    now: () => realWorld.now() + aheadMs,
    advance: (ms) => {
      aheadMs += ms
    },
  }
  chain = await startLoopbackNode({ blockMs: 20 })
  sender = openSender(chain)
})
afterEach(() => chain.stop())

function openSender(
  { url, chainId }: LoopbackNode,
  more: { token?: string; gasPriceMax?: number } = {},
) {
  const node = openCelestiaNode({ url, world: realWorld, token: more.token })
  const journal = new BlobJournal(store.database, network)
  const log = { ...noLog, warn: (fields: object) => told.push(JSON.stringify(fields)) }
  return new BlobSender({ node, chainId, journal, world, log, gasPriceMax: more.gasPriceMax })
}

function makeBlob(bytes = 700) {
  serial += 1
  const tree = { origin: 'service/shop', size: serial, root: new Uint8Array(32).fill(serial) }
  const data = new Uint8Array(bytes).fill(serial % 256)
  return { id: `test:${serial}`, tree, namespace, data }
}

type Outgoing = ReturnType<typeof makeBlob>

async function follow({ id }: Outgoing) {
  return sender.follow(id, await sender.readHead())
}

/** Lists the heights of the blocks that have the blob. */
function listHeights({ data }: Outgoing): number[] {
  const commitment = Buffer.from(computeCommitment(namespace, data))
  return chain
    .blocks()
    .filter(({ square }) => square.blobs.some((one) => commitment.equals(one.commitment)))
    .map(({ height }) => height)
}

describe('a blob', () => {
  test.each([1, 478, 5_000, 60_000])(
    'of %i bytes is sent once and kept with its proof, and a second call sends nothing',
    async (bytes) => {
      const blob = makeBlob(bytes)
      const sent = await sender.send(blob)
      expect(sent).toMatchObject({
        state: 'sent',
        transaction: expect.stringMatching(/^[0-9A-F]{64}$/),
      })
      const placed = await follow(blob)
      expect(placed).toMatchObject({ state: 'placed', height: sent?.height })
      expect(listHeights(blob)).toEqual([sent?.height])
      expect(await sender.send(blob)).toEqual(placed)
      expect(chain.calls('state.SubmitPayForBlob')).toBe(1)
      // The proof is kept, so no node is asked any more.
      await chain.pause()
      expect(await sender.follow(blob.id, {} as never)).toEqual(placed)
      await chain.resume()
    },
  )

  test('goes by the other method, which tells no transaction, where the node lacks the first', async () => {
    chain.behave('plain')
    const blob = makeBlob()
    await sender.send(blob)
    expect(await follow(blob)).toMatchObject({ state: 'placed', transaction: null })
    expect(listHeights(blob)).toHaveLength(1)
  })

  test('whose answer was lost after it was taken is found by its commitment, and is not sent again', async () => {
    chain.behave('mute')
    const blob = makeBlob()
    expect(await sender.send(blob)).toMatchObject({ state: 'sent', height: null })
    chain.behave('honest')
    await expect.poll(() => follow(blob)).toMatchObject({ state: 'placed', transaction: null })
    await sender.send(blob)
    expect(listHeights(blob)).toHaveLength(1)
    expect(chain.calls('state.SubmitPayForBlob')).toBe(1)
  })

  test('that the node says was not included in time is found where it was included later', async () => {
    chain.behave('tardy')
    const blob = makeBlob()
    await sender.send(blob)
    await expect.poll(() => follow(blob)).toMatchObject({ state: 'placed' })
    expect(listHeights(blob)).toHaveLength(1)
  })

  test.each(['forgetful', 'mismatch'] as const)(
    'that a node (%s) never includes is lost after a hundred blocks, and not before',
    async (behaviour) => {
      chain.behave(behaviour)
      const blob = makeBlob()
      await sender.send(blob)
      expect(await follow(blob)).toMatchObject({ state: 'sent' })
      chain.mine(120)
      expect(await follow(blob)).toMatchObject({ state: 'lost' })
      expect(await sender.send(blob)).toMatchObject({ state: 'lost' })
    },
  )

  test.each(['poor', 'dear', 'busy'] as const)(
    'that the node (%s) refuses is not in the journal, and is sent by the next call',
    async (behaviour) => {
      const blob = makeBlob()
      if (behaviour !== 'busy') {
        chain.behave(behaviour)
        await expect(sender.send(blob)).rejects.toThrow(SendProblem)
      } else {
        chain.behave(behaviour)
        await expect(sender.send(blob)).rejects.toThrow('429')
      }
      expect(await sender.journal.find(blob.id)).toBeUndefined()
      chain.behave('honest')
      await sender.send(blob)
      expect(await follow(blob)).toMatchObject({ state: 'placed' })
    },
  )

  test.each(['internal', 'limited', 'walled'] as const)(
    'that a node (%s) takes and answers with an error is found, and is sent and counted once',
    async (behaviour) => {
      chain.behave(behaviour)
      const blob = makeBlob()
      for (let step = 0; step < 3; step += 1)
        expect(await sender.send(blob)).toMatchObject({ state: 'sent', height: null })
      expect(told).toEqual([expect.stringMatching(/Internal error|status 4/)])
      chain.behave('honest')
      await expect.poll(() => follow(blob)).toMatchObject({ state: 'placed' })
      expect(chain.taken()).toHaveLength(1)
      expect(listHeights(blob)).toHaveLength(1)
    },
  )

  test('that a node takes though it says that the network refused it is not sent again and again', async () => {
    chain.behave('choosy')
    const blob = makeBlob()
    const day = 24 * 3_600_000
    world.advance(day - (world.now() % day))
    let [refusals, ms] = [0, 0]
    for (; ms < day; ms += 30_000) {
      world.advance(30_000)
      const sent = await sender.send(blob).catch((error) => error)
      if (!(sent instanceof SendProblem)) break
      refusals += 1
      expect(sent.message).toContain('insufficient fee')
    }
    // From here on it counts as sent, and is looked for.
    expect(chain.taken()).toHaveLength(9)
    expect(refusals).toBeGreaterThan(8)
    expect(ms).toBeGreaterThan(3_600_000)
    await sender.send(blob)
    expect(chain.taken()).toHaveLength(9)
    chain.behave('honest')
    await expect.poll(() => follow(blob)).toMatchObject({ state: 'placed' })
    // On the next day the node is believed again.
    chain.behave('poor')
    world.advance(day)
    await expect(sender.send(makeBlob())).rejects.toThrow(SendProblem)
  })

  test('is given to a node that refuses all after pauses that grow, and at once to one that works again', async () => {
    chain.behave('dear')
    const blob = makeBlob()
    const calls = () => chain.calls('state.SubmitPayForBlob')
    for (let ms = 0; ms < 24 * 3_600_000; ms += 300_000) {
      await expect(sender.send(blob)).rejects.toThrow('exceeds max gas price')
      world.advance(300_000)
    }
    expect(calls()).toBeGreaterThan(90)
    expect(calls()).toBeLessThan(110)
    expect(await sender.journal.find(blob.id)).toBeUndefined()
    world.advance(15 * 60_000)
    chain.behave('honest')
    await sender.send(blob)
    chain.behave('dear')
    await expect(sender.send(makeBlob())).rejects.toThrow(SendProblem)
    chain.behave('honest')
    await sender.send(makeBlob())
  })

  test('is looked for where the node named another block', async () => {
    chain.behave('misplacing')
    const blob = makeBlob()
    await sender.send(blob)
    chain.behave('honest')
    await follow(blob)
    await expect.poll(() => follow(blob)).toMatchObject({ state: 'placed' })
    expect(listHeights(blob)).toHaveLength(1)
  })

  test('that may not leave any more when everything else is ready is not sent, and nothing is kept of it', async () => {
    const blob = makeBlob()
    expect(await sender.send(blob, async () => false)).toBeUndefined()
    const unsure = sender.send(blob, () => Promise.reject(new Error('nobody can say')))
    await expect(unsure).rejects.toThrow('nobody can say')
    expect(await sender.journal.find(blob.id)).toBeUndefined()
    expect(chain.calls('state.SubmitPayForBlob')).toBe(0)
    expect(await sender.send(blob, async () => true)).toMatchObject({ state: 'sent' })
  })

  test.each(['forging', 'lying'] as const)(
    'of a node that is %s is not placed',
    async (behaviour) => {
      const blob = makeBlob()
      const { height } = (await sender.send(blob)) ?? {}
      chain.behave(behaviour)
      const problem = behaviour === 'forging' ? 'the subtree roots' : 'its commit is for another'
      await expect(follow(blob)).rejects.toThrow(problem)
      chain.behave('honest')
      expect(await follow(blob)).toMatchObject({ state: 'placed' })
      expect(listHeights(blob)).toEqual([height])
    },
  )

  test('of blocks that the node has forgotten is lost, so that it is sent again, with a proof', async () => {
    const blob = makeBlob()
    const { height } = (await sender.send(blob)) ?? {}
    chain.mine(5)
    chain.prune((height ?? 0) + 1)
    expect(await follow(blob)).toMatchObject({ state: 'lost' })
  })

  test('is found among blobs of strangers, in whatever order, and in a namespace that a stranger has filled', async () => {
    chain.behave('mute')
    const blob = makeBlob()
    await sender.send(blob)
    chain.behave('honest')
    chain.mine(1, [
      { namespace, data: new Uint8Array(900).fill(9) },
      { namespace: deriveNamespace('other'), data: blob.data },
    ])
    await expect.poll(() => follow(blob)).toMatchObject({ state: 'placed' })
  })

  test('is looked for by its commitment alone, so that nobody reads the blobs of strangers that fill the namespace', async () => {
    chain.behave('mute')
    const blob = makeBlob()
    const stranger = { namespace, data: new Uint8Array(60_000).fill(9) }
    for (let at = 0; at < 4; at += 1) chain.mine(1, [stranger])
    await sender.send(blob)
    for (let at = 0; at < 4; at += 1) chain.mine(1, [stranger])
    chain.behave('honest')
    await expect.poll(() => follow(blob)).toMatchObject({ state: 'placed' })
    expect(chain.calls('blob.GetAll')).toBe(0)
  })
})

describe('a blob that cannot be judged', () => {
  const bringAll = async (...blobs: readonly Outgoing[]) => {
    world.advance(31_000)
    const { blobs: found } = await sender.followAll(blobs.map(({ id }) => id))
    return found.map((one) => one?.state)
  }

  test.each(['boasting', 'heightless', 'misplacing'] as const)(
    'as the node (%s) tells a wrong height is found by its commitment, and holds up no other one',
    async (behaviour) => {
      chain.behave(behaviour)
      const blob = makeBlob()
      await sender.send(blob)
      chain.behave('honest')
      const other = makeBlob()
      await sender.send(other)
      const states = await bringAll(blob, other)
      expect(states[1]).toBe('placed')
      await expect.poll(() => bringAll(blob, other)).toEqual(['placed', 'placed'])
      expect(listHeights(blob)).toHaveLength(1)
      expect(chain.taken()).toHaveLength(2)
    },
  )

  test('as the node named a head that no chain reaches is looked for at the true head, and sent again only once it is lost', async () => {
    chain.behave('vain-mute')
    const [blob, lost] = [makeBlob(), makeBlob()]
    await sender.send(blob)
    chain.behave('vain')
    expect(await bringAll(blob)).toEqual(['sent'])
    chain.behave('honest')
    await expect.poll(() => bringAll(blob)).toEqual(['placed'])
    expect(listHeights(blob)).toHaveLength(1)
    chain.behave('vain')
    await sender.journal.insert({
      ...(await keepRow(blob)),
      ...{ id: lost.id, commitment: Buffer.alloc(32), state: 'sent' },
      ...{ fromHeight: 10 ** 12, searchedHeight: 10 ** 12 - 1 },
    })
    chain.behave('honest')
    expect(await bringAll(lost)).toEqual(['sent'])
    chain.mine(50)
    expect(await bringAll(lost)).toEqual(['sent'])
    chain.mine(60)
    await expect.poll(() => bringAll(lost)).toEqual(['lost'])
  })

  const keepRow = async ({ id }: Outgoing) => {
    const row = await sender.journal.find(id)
    if (row === undefined) throw new Error('the blob is in the journal')
    return row
  }

  test.each(['forging', 'garbling'] as const)(
    'as the node is %s waits, is told once, and holds up no other one',
    async (behaviour) => {
      const [first, second] = [makeBlob(), makeBlob(5_000)]
      await sender.send(first)
      chain.behave(behaviour)
      expect(await bringAll(first)).toEqual(['sent'])
      expect(await bringAll(first)).toEqual(['sent'])
      expect(told).toEqual([expect.stringContaining(first.id)])
      await sender.send(second)
      const calls = chain.calls('blob.GetCommitmentProof')
      // Nobody asks again at each look.
      await sender.followAll([first.id])
      expect(chain.calls('blob.GetCommitmentProof')).toBe(calls)
      chain.behave('honest')
      expect(await bringAll(first, second)).toEqual(['placed', 'placed'])
    },
  )

  test('as the node behind the one that was asked first is far behind is not given up before all blocks were looked through', async () => {
    const blob = makeBlob()
    chain.mine(400)
    chain.behave('mute')
    await sender.send(blob)
    chain.behave('honest')
    const row = await keepRow(blob)
    await sender.journal.update({ ...row, fromHeight: 5, searchedHeight: 4 })
    for (let look = 0; look < 3; look += 1) expect((await bringAll(blob))[0]).not.toBe('lost')
    await expect.poll(() => bringAll(blob)).toEqual(['placed'])
  })

  test('as the node ends the connection is asked for again later; after two such blobs no others are asked for in that look', async () => {
    const blobs = [makeBlob(), makeBlob(), makeBlob(), makeBlob()]
    for (const blob of blobs) await sender.send(blob)
    chain.behave('deaf')
    expect(await bringAll(...blobs)).toEqual(['sent', 'sent', 'sent', 'sent'])
    expect(told).toHaveLength(2)
    chain.behave('honest')
    expect(await bringAll(...blobs)).toEqual(['placed', 'placed', 'placed', 'placed'])
  })

  test('as a gateway answers with something else is not taken for one that no block has, nor for one that a block has', async () => {
    chain.behave('mute')
    const blob = makeBlob()
    await sender.send(blob)
    chain.behave('silent')
    chain.mine(300)
    for (let look = 0; look < 4; look += 1) expect(await bringAll(blob)).toEqual(['sent'])
    chain.behave('honest')
    await expect.poll(() => bringAll(blob)).toEqual(['placed'])
  })
})

describe('a node', () => {
  test('of another chain gets nothing', async () => {
    const other = openSender({ ...chain, chainId: 'celestia' })
    await expect(other.send(makeBlob())).rejects.toThrow('serves chain private, not celestia')
    expect(chain.calls('state.SubmitPayForBlob')).toBe(0)
  })

  test('that asks for a token gets it; without it, and with a wrong one, nothing is sent', async () => {
    const guarded = await startLoopbackNode({ token: 'secret', blockMs: 20 })
    try {
      const blob = makeBlob()
      await expect(openSender(guarded).send(blob)).rejects.toThrow('missing permission')
      await expect(openSender(guarded, { token: 'wrong' }).send(blob)).rejects.toThrow('401')
      expect(await sender.journal.find(blob.id)).toBeUndefined()
      const right = openSender(guarded, { token: 'secret' })
      await right.send(blob)
      expect(await right.follow(blob.id, await right.readHead())).toMatchObject({ state: 'placed' })
    } finally {
      await guarded.stop()
    }
  })

  test('that is away, and comes back, has the blob once', async () => {
    const blob = makeBlob()
    await chain.pause()
    await expect(sender.send(blob)).rejects.toThrow()
    expect(await sender.journal.find(blob.id)).toBeUndefined()
    await chain.resume()
    await sender.send(blob)
    expect(await follow(blob)).toMatchObject({ state: 'placed' })
    expect(listHeights(blob)).toHaveLength(1)
  })
})
