// Pays into a balance with the stock x402 client, lets a key spend from it, and sends it back to the wallet. Run it
// where the packages are installed (this repository has them; elsewhere:
// npm install @x402/fetch@2.27.0 @x402/evm@2.27.0 viem@2.57.0):
//
//   node examples/wallet.mjs deposit 1000000
//   BUYER_KEY=0x... node examples/wallet.mjs withdraw 400000 [0x...]
//   BUYER_KEY=0x... node examples/wallet.mjs grant 100000 shop
//   BUYER_KEY=0x... node examples/wallet.mjs show
//
// BUYER_KEY     the wallet's private key, 0x and 64 hex digits; without it a new wallet is made and shown
// TOLLBASE_URL  the service; http://127.0.0.1:9092 when not given
import { createHash, randomUUID } from 'node:crypto'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

// An error is told in one line.
process.on('uncaughtException', ({ message, cause }) => {
  console.error(cause === undefined ? message : `${message}: ${cause.message}`)
  process.exit(1)
})

const service = process.env.TOLLBASE_URL ?? 'http://127.0.0.1:9092'
const [command, amount, target] = process.argv.slice(2)
if (!hasWhatItNeeds()) {
  console.error(
    'usage: node examples/wallet.mjs deposit <amount> | withdraw <amount> [0x...] | grant <amount> <app> | show',
  )
  process.exit(1)
}

const key = process.env.BUYER_KEY ?? generatePrivateKey()
if (!/^0x[0-9a-f]{64}$/i.test(key)) throw new Error('BUYER_KEY must be 0x and 64 hex digits')
const wallet = privateKeyToAccount(key)
console.log(`wallet    ${wallet.address}${process.env.BUYER_KEY ? '' : ` (new: BUYER_KEY=${key})`}`)
const { origin, networks } = await json(fetch(`${service}/.well-known/tollbase`))
const [network] = networks
if (network === undefined)
  throw new Error(`${service} has no payment network: there are no balances`)
const path = `/api/wallets/${wallet.address}`

if (command === 'deposit') {
  // Only a devnet tells its node. It gives test dollars away; elsewhere the wallet must have some.
  if (network.rpc_url !== undefined && process.env.BUYER_KEY === undefined)
    await json(post('/devnet/faucet', { address: wallet.address, amount }))
  const pay = wrapFetchWithPaymentFromConfig(fetch, {
    schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(wallet) }],
    // The client pays no more than a dollar unless it is told to.
    spendControls: { maxAmountPerPayment: `$${Number(amount) / 10 ** network.decimals}` },
  })
  const { entry, transaction } = await json(post(`${path}/deposit`, { amount }, { send: pay }))
  console.log(`deposit   ${entry.amount}, by the transaction ${transaction}`)
}

if (command === 'withdraw') {
  // The key is in the body, where the signature covers it: sent once more, it is the same withdrawal.
  const body = { amount, ...(target && { destination: target }), idempotency_key: randomUUID() }
  const headers = await sign(`${path}/withdraw`, body)
  const asked = await json(post(`${path}/withdraw`, body, { headers }))
  console.log(`withdraw  ${asked.amount} to ${asked.destination} (${asked.withdrawal_id})`)
  for (let seconds = 0; seconds < 60; seconds++) {
    const one = await json(fetch(`${service}/api/transactions/${asked.withdrawal_id}`))
    if (one.status !== 'pending') {
      console.log(`outcome   ${one.status}, by the transaction ${one.transaction_hash}`)
      break
    }
    await new Promise((resolve) => setTimeout(resolve, 1000))
  }
}

if (command === 'grant') {
  const body = { grantee: 'my agent', spend_limit: amount, allowed_targets: [target] }
  const place = `/api/apps/${target}/authorizations`
  const granted = await json(post(place, body, { headers: await sign(place, body) }))
  console.log(`grant     ${granted.spend_limit} at ${target}, until ${granted.expires_at}`)
  console.log(`key       ${granted.user_key} (shown this once; X-User-Key)`)
}

const { available, pending } = await json(fetch(`${service}${path}`))
console.log(`balance   ${available}, and ${pending} on its way out`)

function hasWhatItNeeds() {
  if (command === 'grant') return Boolean(amount && target)
  return command === 'show' || (['deposit', 'withdraw'].includes(command) && Boolean(amount))
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

function post(path, body, { headers = {}, send = fetch } = {}) {
  return send(`${service}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

async function json(pending) {
  const reply = await pending
  if (reply.ok) return reply.json()
  console.error(`${reply.status} ${reply.url}: ${await reply.text()}`)
  process.exit(1)
}
