// Buys answers by a payment channel with the stock x402 client: one deposit, then a voucher for each request, and at
// the end a refund of what is left. Run it where the packages are installed (this repository has them; elsewhere:
// npm install @x402/core@2.27.0 @x402/fetch@2.27.0 @x402/evm@2.27.0 viem@2.57.0):
//
//   node examples/channel.mjs shop::prices '{"find":{"item":"tea"},"limit":10}' 5
//
// BUYER_KEY     the wallet's private key, 0x and 64 hex digits; without it a new wallet is made and shown
// RPC_URL       a node of the network; that of the devnet when not given
// CHANNELS      the folder of the client's books; ./channels when not given
// TOLLBASE_URL  the service; http://127.0.0.1:9092 when not given
import { x402Client } from '@x402/core/client'
import { decodePaymentResponseHeader } from '@x402/core/http'
import { toClientEvmSigner } from '@x402/evm'
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/client'
import { FileClientChannelStorage } from '@x402/evm/batch-settlement/client/file-storage'
import { wrapFetchWithPayment } from '@x402/fetch'
import { createPublicClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

// An error is told in one line.
process.on('uncaughtException', ({ message, cause }) => {
  console.error(cause === undefined ? message : `${message}: ${cause.message}`)
  process.exit(1)
})

const service = process.env.TOLLBASE_URL ?? 'http://127.0.0.1:9092'
const [root, query = '{"limit":10}', times = '5'] = process.argv.slice(2)
if (root === undefined) {
  console.error(
    'usage: node examples/channel.mjs app::collection [\'{"find":{},"limit":10}\'] [times]',
  )
  process.exit(1)
}

const key = process.env.BUYER_KEY ?? generatePrivateKey()
if (!/^0x[0-9a-f]{64}$/i.test(key)) throw new Error('BUYER_KEY must be 0x and 64 hex digits')
const wallet = privateKeyToAccount(key)
console.log(`wallet   ${wallet.address}${process.env.BUYER_KEY ? '' : ` (new: BUYER_KEY=${key})`}`)

const { networks } = await (await fetch(`${service}/.well-known/tollbase`)).json()
const [network] = networks
if (network === undefined) throw new Error(`${service} has no payment network: it sells nothing`)
// Only a devnet tells its node. It gives test dollars away; elsewhere the wallet must have some.
if (network.rpc_url !== undefined && process.env.BUYER_KEY === undefined)
  await post(fetch, '/devnet/faucet', { address: wallet.address })

// The node tells the client where its channel stands; the folder keeps its books over a restart.
const node = createPublicClient({ transport: http(process.env.RPC_URL ?? network.rpc_url) })
const channel = new BatchSettlementEvmScheme(toClientEvmSigner(wallet, node), {
  storage: new FileClientChannelStorage({ directory: process.env.CHANNELS ?? './channels' }),
})
const client = new x402Client().register('eip155:*', channel)
const pay = wrapFetchWithPayment(fetch, client)

for (let n = 0; n < Number(times); n++) {
  const reply = await post(pay, '/list', { root, ...JSON.parse(query) })
  const { records, error } = await reply.json()
  if (!reply.ok) throw new Error(`${reply.status}: ${error}`)
  const header = reply.headers.get('payment-response')
  if (header === null) throw new Error('the answer is free: there is nothing to pay by a channel')
  const notice = decodePaymentResponseHeader(header)
  if (notice.transaction !== '') console.log(`deposit  ${dollars(notice.amount)}`)
  const { chargedAmount, channelState } = notice.extra
  console.log(
    `answer   ${records.length} records, ${dollars(chargedAmount)}; ${dollars(channelState.chargedCumulativeAmount)} in all`,
  )
}

const [app, collection] = root.split('::')
const back = await channel.refund(`${service}/api/apps/${app}/collections/${collection}/records/1`)
console.log(`refund   ${dollars(back.amount)}, by the transaction ${back.transaction}`)

function post(send, path, body) {
  const headers = { 'content-type': 'application/json' }
  return send(`${service}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** Atomic units as people read them: 1000 is $0.001 of a dollar with six decimals. */
function dollars(atomic) {
  return `$${Number(atomic) / 10 ** network.decimals}`
}
