// Sends one request and pays for it with the stock x402 client: a write that has a price, a time pass, a change of the
// encryption. Run it where the packages are installed (this repository has them; elsewhere:
// npm install @x402/fetch@2.27.0 @x402/evm@2.27.0 viem@2.57.0):
//
//   node examples/pay.mjs POST /api/apps/shop/passes '{"target":{"collection":"prices"},"hours":24}'
//   APP_KEY=app_... node examples/pay.mjs POST /store '{"root":"shop::places","data":[{"id":"1","fee":0.25}]}'
//
// APP_KEY       a key of the application, where the request needs one
// BUYER_KEY     the wallet's private key, 0x and 64 hex digits; without it a new wallet is made and shown
// MAX_USD       the most dollars that one request may cost; 1 when not given
// TOLLBASE_URL  the service; http://127.0.0.1:9092 when not given
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

// An error is told in one line.
process.on('uncaughtException', ({ message, cause }) => {
  console.error(cause === undefined ? message : `${message}: ${cause.message}`)
  process.exit(1)
})

const service = process.env.TOLLBASE_URL ?? 'http://127.0.0.1:9092'
const [method, path, body] = process.argv.slice(2)
if (path === undefined) {
  console.error('usage: node examples/pay.mjs <method> <path> [body]')
  process.exit(1)
}

const key = process.env.BUYER_KEY ?? generatePrivateKey()
if (!/^0x[0-9a-f]{64}$/i.test(key)) throw new Error('BUYER_KEY must be 0x and 64 hex digits')
const wallet = privateKeyToAccount(key)
console.log(`wallet   ${wallet.address}${process.env.BUYER_KEY ? '' : ` (new: BUYER_KEY=${key})`}`)

const headers = { 'content-type': 'application/json' }
const { networks } = await (await fetch(`${service}/.well-known/tollbase`)).json()
const [network] = networks
if (network === undefined) throw new Error(`${service} has no payment network: it sells nothing`)
// Only a devnet tells its node. It gives test dollars away; elsewhere the wallet must have some.
if (network.rpc_url !== undefined && process.env.BUYER_KEY === undefined) {
  const faucet = { method: 'POST', headers, body: JSON.stringify({ address: wallet.address }) }
  await fetch(`${service}/devnet/faucet`, faucet)
}

const pay = wrapFetchWithPaymentFromConfig(fetch, {
  schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(wallet) }],
  spendControls: { maxAmountPerPayment: `$${process.env.MAX_USD ?? 1}` },
})
const reply = await pay(`${service}${path}`, {
  ...{ method, body },
  headers: { ...headers, ...(process.env.APP_KEY && { 'x-app-key': process.env.APP_KEY }) },
})
console.log(`answer   ${reply.status} ${await reply.text()}`)

const receiptId = reply.headers.get('x-receipt-id')
if (receiptId !== null) {
  const address = `${service}/api/receipts/${receiptId}`
  const { amount } = await (await fetch(address)).json()
  console.log(`cost     $${Number(amount) / 10 ** network.decimals}`)
  console.log(`receipt  ${address}`)
}
if (!reply.ok) process.exitCode = 1
