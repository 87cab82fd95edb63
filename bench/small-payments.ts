import { randomBytes } from 'node:crypto'
import { encodeHex } from '@tollbase/server/x402/hex'
import { deriveAddress } from '@tollbase/server/x402/signature'
import { x402Client, x402HTTPClient } from '@x402/core/client'
import { toClientEvmSigner } from '@x402/evm'
import { BatchSettlementEvmScheme, signVoucher } from '@x402/evm/batch-settlement/client'
import { createPublicClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { compareWithHandWritten, makeAgentRequests } from './hand-written-sales.ts'
import { drive, type LoadResult, makeHttpRequest, requireNoFailure, sendOnce } from './load.ts'
import {
  connections,
  describeExpress,
  makeBody,
  price,
  recordsTotal,
  startExpress,
} from './paid-reads.ts'
import {
  fund,
  makePaidRequest,
  readRequirements,
  requestsAlone,
  requestsPerRound,
  signExact,
  takeTurns,
  type Unpaid,
} from './payments.ts'
import { call, openPlace, operatorKey, type Place, startOurs } from './place.ts'
import { collection, fillCollection, storeItems } from './reads.ts'
import type { Benchmark, Row } from './report.ts'
import { interleave } from './rounds.ts'
import { toHexText } from './signatures.ts'

const free = 'free_items'
const channelsCount = 16
const deposit = '900000000'

/** The same read, sold and free, with the same number of connections. */
type Pair = {
  readonly paid: (connections: number, count: number) => Promise<LoadResult>
  readonly free: (connections: number, count: number) => Promise<LoadResult>
}

/** Measures small paid calls that no transaction waits for, against the same read of a free collection. */
export const smallPayments: Benchmark = {
  name: 'small-payments',
  run: async ({ rounds, nodeOptions, only }) => {
    const place = await openPlace()
    const ours = await startOurs(place, { nodeOptions, command: 'dev' })
    const { port } = ours
    try {
      const policy = { read: 'public', price: { per_access: price } }
      const key = await storeItems(port, { total: recordsTotal, policy })
      await fillCollection(port, { key, name: free, total: recordsTotal })
      const lines: Readonly<Record<string, () => Promise<readonly Row[]>>> = {
        'balance first': () => balanceFirst(place, port, { rounds, nodeOptions }),
        prepaid: () => prepaid(place, port, { rounds, nodeOptions }),
        vouchers: () => vouchers(port, rounds),
      }
      const rows: Row[] = []
      for (const [name, line] of Object.entries(lines))
        if (name.includes(only)) rows.push(...(await line()))
      return rows
    } finally {
      await ours.stop()
      await place.close()
    }
  },
}

async function balanceFirst(
  place: Place,
  port: number,
  options: { readonly rounds: number; readonly nodeOptions: readonly string[] },
): Promise<Row[]> {
  const payers = Array.from({ length: connections }, () => randomBytes(32))
  for (const key of payers) {
    await fund(port, deriveAddress(key))
    await pay(port, { path: `/api/wallets/${deriveAddress(key)}/deposit`, body: depositBody }, key)
  }
  const sign = async (count: number) => {
    const lists = payers.map(async (key, at) => {
      const unpaid = { path: '/list', body: makeBody(at, collection) }
      const required = await readRequirements(port, unpaid)
      return Array.from({ length: Math.ceil(count / payers.length) }, () =>
        makePaidRequest(unpaid, signExact(required, key)),
      )
    })
    return takeTurns(await Promise.all(lists)).slice(0, count)
  }
  const pair: Pair = {
    paid: async (wide, count) => send(port, wide, await sign(count)),
    free: readFree(port),
  }
  const note = `each payment signed before and covered by its payer's balance; ${payers.length} payers`
  const row = await compareRates('paid read by /list, exact from the balance', pair, {
    rounds: options.rounds,
    target: 0.5,
    note,
  })
  const others = Array.from({ length: connections }, () => randomBytes(32))
  for (const key of others) await fund(port, deriveAddress(key))
  const { pollMs, peer } = await startExpress(place, { ...options, payers: others })
  try {
    await peer.run()
    const comparison = await interleave({
      rounds: options.rounds,
      ours: async () => (await pair.paid(connections, requestsPerRound)).perSecond,
      peer: peer.run,
    })
    const name = `paid read by /list, exact from the balance, beside Express that settles each, ${connections} connections`
    return [
      row,
      { name, unit: 'requests/s', target: 20, comparison, note: describeExpress(pollMs) },
    ]
  } finally {
    await peer.stop()
  }
}

async function prepaid(
  place: Place,
  port: number,
  options: { readonly rounds: number; readonly nodeOptions: readonly string[] },
): Promise<Row[]> {
  const { rounds } = options
  const body = { name: 'Agents', app_id: 'agents' }
  const { app_key } = await call(port, '/api/apps', { body, key: operatorKey })
  const admin = String(app_key)
  const payer = randomBytes(32)
  await fund(port, deriveAddress(payer))
  const path = '/api/apps/agents/wallet/deposit'
  await pay(port, { path, body: depositBody, headers: { 'x-app-key': admin } }, payer)
  const limits = { max_payment_per_tx: price, spend_allowance: deposit }
  const made = await call(port, '/api/apps/agents/keys', {
    key: admin,
    body: { permissions: ['Pay'], pay_limits: limits },
  })
  const agent = String(made.app_key ?? made.key)
  const pair: Pair = {
    paid: (wide, count) => send(port, wide, makeAgentRequests(agent, count)),
    free: readFree(port),
  }
  const name = 'paid read by /list, prepaid by one agent key'
  const note = 'each request with an Idempotency-Key'
  return [
    await compareRates(name, pair, { rounds, target: 0.8, note }),
    await compareLatency(name, pair, { rounds, wide: 1, most: 3 }),
    await compareLatency(name, pair, { rounds, wide: connections, most: 6 }),
    ...(await compareWithHandWritten(place, pair.paid, options)),
  ]
}

async function vouchers(port: number, rounds: number): Promise<Row[]> {
  const channels = await Promise.all(
    Array.from({ length: channelsCount }, (_, at) => openChannel(port, at)),
  )
  const each = requestsPerRound / channelsCount
  const pair: Pair = {
    // The vouchers of a channel follow each other, so each channel has a connection of its own.
    paid: async () => {
      const lists = await Promise.all(channels.map((channel) => channel.sign(each)))
      const startedAt = performance.now()
      const results = await Promise.all(lists.map((requests) => send(port, 1, requests)))
      const seconds = (performance.now() - startedAt) / 1000
      const [first] = results
      if (first === undefined) throw new Error('no channel')
      return {
        ...first,
        requests: requestsPerRound,
        seconds,
        perSecond: requestsPerRound / seconds,
      }
    },
    free: readFree(port),
  }
  return [
    await compareRates('paid read by /list, by vouchers', pair, {
      rounds,
      wide: channelsCount,
      note: `${channelsCount} channels, each voucher signed before; target 2,000 a second`,
    }),
  ]
}

/** Opens a channel by the stock client with its first paid read. */
async function openChannel(port: number, at: number) {
  const key = randomBytes(32)
  await fund(port, deriveAddress(key))
  const [network] = (await readJson(port, '/.well-known/tollbase')).networks
  const account = privateKeyToAccount(toHexText(encodeHex(key)))
  const signer = toClientEvmSigner(
    account,
    createPublicClient({ transport: http(network.rpc_url) }),
  )
  const scheme = new BatchSettlementEvmScheme(signer, { depositStrategy: () => BigInt(deposit) })
  const client = new x402HTTPClient(new x402Client().register('eip155:*', scheme))
  const unpaid = { path: '/list', body: makeBody(at, collection) }
  const required = await readRequirements(port, unpaid)
  const first = await client.createPaymentPayload(required as never)
  await mustSend(port, makePaidRequest(unpaid, first))
  const { channelConfig, voucher } = first.payload as {
    channelConfig: object
    voucher: { channelId: `0x${string}`; maxClaimableAmount: string }
  }
  let signed = BigInt(voucher.maxClaimableAmount)
  return {
    sign: async (count: number): Promise<Buffer[]> => {
      const requests: Buffer[] = []
      for (let n = 0; n < count; n++) {
        signed += BigInt(price)
        const next = await signVoucher(
          signer,
          voucher.channelId,
          String(signed),
          first.accepted.network,
        )
        const payload = { type: 'voucher', channelConfig, voucher: next }
        requests.push(makePaidRequest(unpaid, { ...first, payload }))
      }
      return requests
    },
  }
}

const depositBody = JSON.stringify({ amount: deposit })

/** Sends a request, and pays what its 402 asks for by a transfer. */
async function pay(port: number, unpaid: Unpaid, key: Buffer): Promise<void> {
  const required = await readRequirements(port, unpaid)
  await mustSend(port, makePaidRequest(unpaid, signExact(required, key)))
}

async function mustSend(port: number, request: Buffer): Promise<void> {
  const reply = await sendOnce(port, request)
  if (reply.status !== 200) throw new Error(`${reply.status} ${reply.body.toString()}`)
}

// biome-ignore lint/suspicious/noExplicitAny: the program under test describes itself.
async function readJson(port: number, path: string): Promise<any> {
  return (await fetch(`http://127.0.0.1:${port}${path}`)).json()
}

async function send(port: number, wide: number, requests: readonly Buffer[]): Promise<LoadResult> {
  return requireNoFailure(await drive({ port, connections: wide, requests, status: 200 }))
}

function readFree(port: number): Pair['free'] {
  return (wide, count) =>
    send(
      port,
      wide,
      Array.from({ length: count }, (_, at) => makeHttpRequest('/list', makeBody(at, free))),
    )
}

async function compareRates(
  name: string,
  pair: Pair,
  options: {
    readonly rounds: number
    readonly wide?: number
    readonly target?: number
    readonly note: string
  },
): Promise<Row> {
  const { rounds, wide = connections, target, note } = options
  const run = async (side: keyof Pair) => (await pair[side](wide, requestsPerRound)).perSecond
  await run('paid')
  await run('free')
  return {
    name: `${name}, over the same read free, ${wide} connections`,
    unit: 'requests/s',
    ...(target !== undefined && { target }),
    comparison: await interleave({ rounds, ours: () => run('paid'), peer: () => run('free') }),
    note,
  }
}

/** States what a payment adds to the median latency. */
async function compareLatency(
  name: string,
  pair: Pair,
  options: { readonly rounds: number; readonly wide: number; readonly most: number },
): Promise<Row> {
  const { rounds, wide, most } = options
  const count = wide === 1 ? requestsAlone : requestsPerRound
  const run = async (side: keyof Pair) => (await pair[side](wide, count)).p50
  const { ours, peer } = await interleave({
    rounds,
    ours: () => run('paid'),
    peer: () => run('free'),
  })
  const added = ours - peer
  return {
    name: `${name}: p50 over the same read free, ${wide} ${wide === 1 ? 'connection' : 'connections'}`,
    unit: 'ms',
    value: `+${added.toFixed(1)} ms (${ours.toFixed(1)} over ${peer.toFixed(1)})`,
    note: `target +${most} ms: ${added <= most ? 'met' : 'missed'}`,
  }
}
