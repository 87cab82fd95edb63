// Buys an answer with the stock x402 client, then a smaller one with what is left, shows what they cost, and takes the
// rest back into the wallet. Run it where the packages are installed (this repository has them; elsewhere:
// npm install @x402/fetch@2.27.0 @x402/evm@2.27.0 viem@2.57.0):
//
//   node examples/buy.mjs shop::prices '{"find":{"item":"tea"},"limit":10}'
//
// BUYER_KEY     the wallet's private key, 0x and 64 hex digits; without it a new wallet is made and shown
// REPLY         a file for the bytes of the answer, to check them with the receipt (tollbase verify --reply)
// MAX_USD       the most dollars that one request may cost; 1 when not given
// TOLLBASE_URL  the service; http://127.0.0.1:9092 when not given
import { createHash, randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

// An error is told in one line.
process.on('uncaughtException', ({ message, cause }) => {
  console.error(cause === undefined ? message : `${message}: ${cause.message}`)
  process.exit(1)
})

const service = process.env.TOLLBASE_URL ?? 'http://127.0.0.1:9092'
const [root, query = '{"limit":10}'] = process.argv.slice(2)
if (root === undefined) {
  console.error('usage: node examples/buy.mjs app::collection [\'{"find":{},"limit":10}\']')
  process.exit(1)
}

const key = process.env.BUYER_KEY ?? generatePrivateKey()
if (!/^0x[0-9a-f]{64}$/i.test(key)) throw new Error('BUYER_KEY must be 0x and 64 hex digits')
const wallet = privateKeyToAccount(key)
console.log(`wallet   ${wallet.address}${process.env.BUYER_KEY ? '' : ` (new: BUYER_KEY=${key})`}`)

const { origin, networks } = await json(fetch(`${service}/.well-known/tollbase`))
const [network] = networks
if (network === undefined) throw new Error(`${service} has no payment network: it sells nothing`)
// Only a devnet tells its node. It gives test dollars away; elsewhere the wallet must have some.
if (network.rpc_url !== undefined && process.env.BUYER_KEY === undefined)
  await json(post('/devnet/faucet', { address: wallet.address }))

const request = { root, ...JSON.parse(query) }
const offer = await post('/list', request)
if (offer.status === 402) {
  const [{ maxAmountRequired }] = (await offer.json()).accepts
  console.log(`price    at most ${dollars(maxAmountRequired)}`)
}

// The client answers a 402 with a signed transfer of what is asked, and sends the request again with it.
const pay = wrapFetchWithPaymentFromConfig(fetch, {
  schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(wallet) }],
  spendControls: { maxAmountPerPayment: `$${process.env.MAX_USD ?? 1}` },
})
const reply = await post('/list', request, { send: pay })
if (process.env.REPLY)
  writeFileSync(process.env.REPLY, Buffer.from(await reply.clone().arrayBuffer()))
const { records } = await json(reply)
for (const record of records) console.log('record  ', JSON.stringify(record))

const receiptId = reply.headers.get('x-receipt-id')
if (receiptId === null) {
  console.log('cost     nothing')
} else {
  const address = `${service}/api/receipts/${receiptId}`
  const { amount, change } = await json(fetch(address))
  console.log(
    `cost     ${dollars(amount)}, and ${dollars(change)} of what was paid is on your balance`,
  )
  console.log(`receipt  ${address}`)
  await buyLess()
  await withdraw()
}

/** Half as much costs no more than half: what the first payment left pays for it, and nothing is sent to the chain. */
async function buyLess() {
  const limit = Math.max(1, Math.floor((request.limit ?? 10) / 2))
  const second = await post('/list', { ...request, limit }, { send: pay })
  await json(second)
  const address = `${service}/api/receipts/${second.headers.get('x-receipt-id')}`
  const { amount, paid_from } = await json(fetch(address))
  const how = paid_from === 'balance' ? 'from your balance' : 'by another transfer'
  const { available } = await json(fetch(`${service}/api/wallets/${wallet.address}`))
  console.log(`again    ${dollars(amount)}, paid ${how}; ${dollars(available)} is left there`)
}

/** The rest goes back into the wallet by a transaction; where it is too little for one, it stays and pays the next purchase. */
async function withdraw() {
  const path = `/api/wallets/${wallet.address}`
  const { available: amount } = await json(fetch(`${service}${path}`))
  if (amount === '0') return
  const body = { amount, idempotency_key: randomUUID() }
  const asked = await post(`${path}/withdraw`, body, {
    signature: await sign(`${path}/withdraw`, body),
  })
  if (!asked.ok) {
    console.log(`rest     ${dollars(amount)} stays on your balance: ${(await asked.json()).error}`)
    return
  }
  const { withdrawal_id: id } = await asked.json()
  for (let seconds = 0; seconds < 60; seconds++) {
    const { status, transaction_hash: hash } = await json(
      fetch(`${service}/api/transactions/${id}`),
    )
    if (status !== 'pending') {
      console.log(
        `rest     ${dollars(amount)} to your wallet: ${status}, by the transaction ${hash}`,
      )
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 1000))
  }
  console.log(`rest     ${dollars(amount)} is on its way to your wallet (${id})`)
}

/** Signs a request as its owner: EIP-191 over origin, method, path, time and the hash of the body. */
async function sign(path, body) {
  const hash = createHash('sha256').update(JSON.stringify(body)).digest('hex')
  const timestamp = String(Math.floor(Date.now() / 1000))
  const message = `tollbase ${origin}\nPOST\n${path}\n${timestamp}\n${hash}`
  return {
    'x-wallet-address': wallet.address,
    'x-timestamp': timestamp,
    'x-signature': await wallet.signMessage({ message }),
  }
}

function post(path, body, { send = fetch, signature = {} } = {}) {
  const headers = { 'content-type': 'application/json', ...signature }
  return send(`${service}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

async function json(pending) {
  const reply = await pending
  if (reply.ok) return reply.json()
  console.error(`${reply.status} ${reply.url}: ${await reply.text()}`)
  process.exit(1)
}

/** Atomic units as people read them: 1000 is $0.001 of a dollar with six decimals. */
function dollars(atomic) {
  return `$${Number(atomic) / 10 ** network.decimals}`
}
