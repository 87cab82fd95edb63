import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { requirePresent } from '@tollbase/server/base/assert'
import { noLog as log } from '@tollbase/server/base/log'
import { realWorld, type World } from '@tollbase/server/base/world'
import { sql } from '@tollbase/server/database/sql'
import { createTestDatabase } from '@tollbase/server/database/testing'
import { startDevnet } from '@tollbase/server/devnet/devnet'
import { readTransactionCount } from '@tollbase/server/x402/evm-chain'
import { makeEvmFacilitator } from '@tollbase/server/x402/evm-facilitator'
import type { Facilitator, Settlement } from '@tollbase/server/x402/facilitator'
import {
  computeSelector,
  encodeHex,
  encodeHexWord,
  encodeNumberWord,
  encodeQuantity,
} from '@tollbase/server/x402/hex'
import {
  buildJointColumns,
  buildReplacementColumns,
  makeJournalTables,
} from '@tollbase/server/x402/journal'
import type { Requirement, SignedPayment } from '@tollbase/server/x402/protocol'
import { openRpc, type Rpc } from '@tollbase/server/x402/rpc'
import { JournaledSender } from '@tollbase/server/x402/sender'
import {
  deriveAddress,
  digestTransfer,
  digestTyped,
  getDomainSeparator,
  hashTypeName,
  signDigest,
} from '@tollbase/server/x402/signature'
import { encodeTransferCall, transferGas } from '@tollbase/server/x402/token'
import { signTransaction } from '@tollbase/server/x402/transaction'

/** A payment that is to be settled, and the key of its payer. */
export type Due = {
  readonly id: string
  readonly key: Buffer
  readonly payment: SignedPayment
  readonly requirement: Requirement
}

/** The part of a service that settles. */
export type Place = {
  readonly sender: JournaledSender
  readonly facilitator: Facilitator
  readonly key: Buffer
}

const funds = 1_000n
const cancelType = hashTypeName('CancelAuthorization(address authorizer,bytes32 nonce)')
const cancelSelector = computeSelector('cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)')
const transferSelector = computeSelector('transfer(address,uint256)')

/** Starts a real chain that makes a block where a test says so, a database, and so many wallets with money. */
export async function startHeldChain(walletCount: number) {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-held-'))
  const store = await createTestDatabase()
  await store.database.execute(sql`CREATE SCHEMA operations`)
  const tables = [...makeJournalTables(), ...buildReplacementColumns(), ...buildJointColumns()]
  for (const table of tables) await store.database.execute(table)
  const devnet = await startDevnet({ dataDir: folder, world: realWorld, log })
  const { network } = devnet
  const rpc = openRpc({ url: devnet.rpcUrl, world: realWorld })
  /** Wallets with money that no test has used yet. */
  const wallets = Array.from({ length: walletCount }, () => realWorld.randomBytes(32))
  await Promise.all(wallets.map((key) => devnet.faucet(deriveAddress(key), funds)))
  await devnet.detach()

  const mine = () => rpc.call('evm_mine', [])

  const makeDue = (
    change: { validBefore?: bigint; isAlone?: true; key?: Buffer; value?: bigint } = {},
  ): Due => {
    const { key = requirePresent(wallets.pop(), 'a wallet'), value = 100n } = change
    const seconds = Math.floor(realWorld.now() / 1000)
    const { validBefore = BigInt(seconds + 3_600), isAlone } = change
    const nonce = encodeHex(realWorld.randomBytes(32))
    const fields = {
      ...{ from: deriveAddress(key), to: network.payTo, value },
      ...{ validAfter: 0n, validBefore, nonce },
    }
    const payment: SignedPayment = {
      ...{ version: 1, network: network.id, scheme: 'exact', receiptForm: 'base64' },
      payload: { ...fields, signature: signDigest(digestTransfer(network, fields), key) },
    }
    const requirement: Requirement = {
      ...{ network, amount: value, quoteId: 'q1.test', maxTimeoutSeconds: 60 },
      ...{ expiresAt: seconds + 600, ...(isAlone && { isAlone }) },
    }
    return { id: `pay:${encodeHex(realWorld.randomBytes(8))}`, key, payment, requirement }
  }

  const open = async (
    made: {
      key?: Buffer
      world?: World
      by?: Rpc
      replaceAfterMs?: number
      confirmations?: number
      settleTimeoutMs?: number
    } = {},
  ): Promise<Place> => {
    const { key = realWorld.randomBytes(32), world = realWorld, by = rpc } = made
    const { confirmations = 1, settleTimeoutMs = 15_000, replaceAfterMs = 30_000 } = made
    await rpc.call('anvil_setBalance', [deriveAddress(key), encodeQuantity(10n ** 22n)])
    const parts = { rpc: by, world, network, log }
    const { database } = store
    const sender = new JournaledSender({
      ...parts,
      ...{ database, key, replaceAfterMs, leaseMs: 10 ** 9 },
    })
    await sender.start()
    const waits = { pollMs: 4, confirmations, settleTimeoutMs }
    return { sender, facilitator: makeEvmFacilitator({ ...parts, ...waits, sender }), key }
  }

  /** Waits until the node has a transaction of each payment. */
  const untilSent = async ({ sender }: Place, dues: readonly Due[]): Promise<void> => {
    const hashes = new Set<string>()
    for (const { id } of dues) {
      let row = await sender.find(id)
      for (; row === undefined; row = await sender.find(id)) await realWorld.sleep(2)
      hashes.add(row.hash)
    }
    for (const hash of hashes)
      while ((await rpc.call('eth_getTransactionByHash', [hash])) === null) await realWorld.sleep(2)
  }

  /** Mines until all is over. */
  const mineUntil = async <T>(work: Promise<T>): Promise<T> => {
    let isOver = false
    const end = () => {
      isOver = true
    }
    work.then(end, end)
    for (let n = 0; !isOver && n < 2_000; n++) {
      await mine()
      await realWorld.sleep(5)
    }
    return work
  }

  /** Somebody calls the token, and is mined before all that wait. */
  const callFirst = async (key: Buffer, data: string): Promise<void> => {
    await rpc.call('anvil_setBalance', [deriveAddress(key), encodeQuantity(10n ** 20n)])
    const nonce = await readTransactionCount(rpc, deriveAddress(key))
    const fees = { maxPriorityFeePerGas: 50n * 10n ** 9n, maxFeePerGas: 10n ** 13n }
    const call = { to: network.asset.address, data, gas: transferGas }
    const { raw } = signTransaction({ chainId: devnet.chainId, nonce, ...fees, ...call }, key)
    await rpc.call('eth_sendRawTransaction', [encodeHex(raw)])
  }

  const harms = {
    /** Its payer has spent the money by then. */
    broke: ({ key }: Due) => {
      const to = encodeHexWord(`0x${'77'.repeat(20)}`)
      return callFirst(key, `${transferSelector}${to}${encodeNumberWord(funds)}`)
    },
    /** Its payer cancels it. */
    canceled: ({ key, payment }: Due) => {
      const { from, nonce } = payment.payload
      const words = [encodeHexWord(from), encodeHexWord(nonce)]
      const digest = digestTyped(getDomainSeparator(network), cancelType, words)
      const signature = signDigest(digest, key).slice(2)
      const [rs, v] = [signature.slice(0, 128), signature.slice(128)]
      const data = `${cancelSelector}${words.join('')}${v.padStart(64, '0')}${rs}`
      return callFirst(realWorld.randomBytes(32), data)
    },
    /** A third party hands it in. */
    thirdParty: ({ payment }: Due) =>
      callFirst(realWorld.randomBytes(32), encodeTransferCall(payment.payload)),
    /** Its wallet gets code that uses up all gas. */
    burner: ({ key }: Due) => rpc.call('anvil_setCode', [deriveAddress(key), '0xfe']),
  }

  const close = async () => {
    rpc.close()
    process.kill(devnet.pid)
    await store.drop()
    rmSync(folder, { recursive: true, force: true })
  }
  return { devnet, rpc, store, mine, makeDue, open, untilSent, mineUntil, harms, close }
}

export const settle = ({ facilitator }: Place, { id, payment, requirement }: Due) =>
  facilitator.settle(id, payment, requirement)

export const lookup = ({ facilitator }: Place, { id, payment, requirement }: Due) =>
  facilitator.lookup(id, payment, requirement)

/** Lists the transactions by which payments were made. */
export const listTransactions = (outcomes: readonly Settlement[]) =>
  new Set(outcomes.flatMap((one) => (one.state === 'settled' ? [one.transaction] : [])))
