import { anchoredTopic, decodeTree, hashOrigin } from '@tollbase/verify/anchor'
import type { EvmAnchor } from '../../anchors/anchor-chain.ts'
import { SetupError } from '../../base/setup-error.ts'
import { realWorld } from '../../base/world.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { readChainId, readLogs } from '../../x402/evm-chain.ts'
import { encodeHexWord } from '../../x402/hex.ts'
import { openRpc, type Rpc } from '../../x402/rpc.ts'
import { readSearchedHead } from '../impossible-head.ts'
import { type MaintenanceReport, runWithStorage } from '../maintenance.ts'
import { readRootAt } from './audit-anchors.ts'

type Difference = Readonly<Record<string, unknown>>

/** Blocks of one request for logs; public nodes take no more. */
const blocksAtOnce = 10_000n

/**
 * Compares the log with its anchors on another chain, as a node of that chain has them. Each anchor that the log names
 * must be there, and each root that our senders put there must be a root of our tree. So this finds a log that was cut
 * off or made anew, even if nobody kept a checkpoint. The log itself was audited before.
 */
export async function auditOuterChain(
  config: Config,
  url: string,
): Promise<Pick<MaintenanceReport, 'equal' | 'difference'>> {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new SetupError(`--rpc must be a URL of http or https, not ${url}`)
  const rpc = openRpc({ url, world: realWorld })
  try {
    return await runWithStorage(config, async (database, [system]) => {
      const difference = system && (await compare(database, rpc, system.origin))
      return { equal: difference === undefined, ...(difference && { difference }) }
    })
  } finally {
    rpc.close()
  }
}

async function compare(
  database: Database,
  rpc: Rpc,
  origin: string,
): Promise<Difference | undefined> {
  const network = `eip155:${await readChainId(rpc)}`
  const rows = await database.query<{ body: string }>(
    sql`SELECT body FROM system.anchor WHERE network = ${network} ORDER BY size`,
  )
  const anchors = rows.map(({ body }): EvmAnchor => JSON.parse(body))
  const [first] = anchors
  if (first === undefined)
    throw new SetupError(`--rpc: the log tells of no anchor on ${network}, which the node serves`)
  const head = await readSearchedHead(rpc)
  const missing = new Map(anchors.map((one) => [one.transaction, one]))
  const senders = new Set(anchors.map(({ contract, signer }) => `${contract} ${signer}`))
  for (const sender of senders) {
    const [address = '', signer = ''] = sender.split(' ')
    const topics = [anchoredTopic, `0x${encodeHexWord(signer)}`, hashOrigin(origin)]
    for (let from = BigInt(first.block_number); from <= head; from += blocksAtOnce) {
      const toBlock = from + blocksAtOnce - 1n > head ? head : from + blocksAtOnce - 1n
      for (const log of await readLogs(rpc, { address, topics, fromBlock: from, toBlock })) {
        missing.delete(log.transactionHash)
        const { size, root } = decodeTree(Buffer.from(log.data.slice(2), 'hex'))
        const found = await readRootAt(database, size)
        const expected = Buffer.from(root).toString('base64')
        if (found !== expected)
          return {
            what: `the tree of ${size} entries, as ${log.transactionHash} on ${network} says`,
            expected,
            found: found ?? 'no block of the log ends there',
          }
      }
    }
  }
  const [lost] = missing.values()
  return (
    lost && {
      what: `anchor ${lost.transaction} on ${network}`,
      expected: `an event in block ${lost.block_number}`,
      found: 'none',
    }
  )
}
