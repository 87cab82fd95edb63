import { setImmediate } from 'node:timers/promises'
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme as ExactEvmFacilitator } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { paymentMiddleware, x402ResourceServer } from '@x402/express'
import express from 'express'
import { Pool } from 'pg'
import {
  createNonceManager,
  createWalletClient,
  type Hex,
  http,
  type NonceManagerSource,
  parseGwei,
  publicActions,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { jsonRpc } from 'viem/nonce'
import { type BareConfig, makeListValues } from './bare-config.ts'

/**
 * The usual way to sell a read: Express with the x402 middleware, the facilitator of @x402/evm in the same process,
 * viem's nonce manager, pg. Fees and gas are given, as ours knows them too, which saves viem two requests to the
 * chain for each payment.
 */
export type ExpressConfig = BareConfig & {
  readonly rpcUrl: string
  /** The account that pays the gas. */
  readonly key: Hex
  readonly payTo: string
  readonly price: string
  readonly asset: { readonly address: string; readonly name: string; readonly version: string }
  readonly pollMs: number
}

const network = 'eip155:84532'
const config: ExpressConfig = JSON.parse(process.argv[2] ?? '{}')
const pool = new Pool({ ...config.connection, max: config.poolSize })

const facilitator = new x402Facilitator().register(network, new ExactEvmFacilitator(signer()))
const resourceServer = new x402ResourceServer({
  verify: (payload, requirements) => facilitator.verify(payload, requirements),
  settle: (payload, requirements) => facilitator.settle(payload, requirements),
  // The server's list of networks is typed more loosely than the client's.
  getSupported: async () => facilitator.getSupported() as never,
}).register(network, new ExactEvmScheme())

const { address, name, version } = config.asset
const price = { asset: address, amount: config.price, extra: { name, version } }
const app = express()
app.disable('x-powered-by')
app.use(express.json())
app.use(
  paymentMiddleware(
    {
      'POST /list': {
        accepts: { scheme: 'exact', network, payTo: config.payTo, price },
        description: 'Records',
        mimeType: 'application/json',
      },
    },
    resourceServer,
  ),
)
app.post('/list', async (request, response) => {
  const { rows } = await pool.query({
    name: 'list',
    text: config.list?.text ?? '',
    values: makeListValues(config, request.body),
  })
  const [page] = rows
  response
    .type('application/json')
    .send(
      `{"records":[${page.records}],"as_of":{"block_height":${page.height},"sequence":${page.sequence}}}`,
    )
})
// An end by a signal would leave no profile behind.
process.once('SIGTERM', () => process.exit(0))
const server = app.listen(0, '127.0.0.1', () => {
  const bound = server.address()
  process.stdout.write(
    `listening on ${typeof bound === 'object' && bound !== null ? bound.port : 0}\n`,
  )
})

/**
 * Reads the nonce from the chain once and counts on from there, because this process alone uses the key. If it read
 * it each time, as by default, the chain's count would now and then be off by one while a block is made, and
 * payments would fail or hang.
 */
function countedOnce(): NonceManagerSource {
  const { get } = jsonRpc()
  let asked: number | Promise<number> | undefined
  let next = 0
  return {
    get: async (parameters) => {
      asked ??= get(parameters)
      next = Math.max(next, await asked)
      // The manager updates what it gave out some turns later; an answer before that would give the same nonce
      // again.
      await setImmediate()
      return next
    },
    set: (_parameters, nonce) => {
      next = Math.max(next, nonce + 1)
    },
  }
}

function signer() {
  const nonceManager = createNonceManager({ source: countedOnce() })
  const account = privateKeyToAccount(config.key, { nonceManager })
  const transport = http(config.rpcUrl)
  const client = createWalletClient({
    account,
    chain: baseSepolia,
    transport,
    pollingInterval: config.pollMs,
  }).extend(publicActions)
  const fees = {
    gas: 150_000n,
    maxFeePerGas: parseGwei('20'),
    maxPriorityFeePerGas: parseGwei('1'),
  }
  // viem's own parameters are generic over the ABI; the package's are not.
  return toFacilitatorEvmSigner({
    address: account.address,
    readContract: (args) => client.readContract(args as never),
    verifyTypedData: (args) => client.verifyTypedData(args as never),
    writeContract: (args) => client.writeContract({ ...args, ...fees } as never),
    sendTransaction: (args) => client.sendTransaction({ ...args, ...fees } as never),
    waitForTransactionReceipt: (args) => client.waitForTransactionReceipt(args),
    getCode: (args) => client.getCode(args),
  })
}
