import { type Html, html } from './html.ts'

/** The packages of a buyer's program, in the versions that this service is tested with. */
export const buyerPackages = '@x402/fetch@2.27.0 @x402/evm@2.27.0 viem@2.57.0'
/** The public SDK, in the version that this service is tested with. */
export const sdkPackage = '@onchaindb/sdk@0.4.1'

/** A request that a program sends; without a body it is a GET. */
export type BoughtRequest = { readonly url: string; readonly body?: unknown }

/** Renders a whole program that buys one answer, with the commands that install its packages and run it. */
export function renderBuyerProgram(request: BoughtRequest): Html {
  return html`<pre><code>npm install ${buyerPackages}
BUYER_KEY=0x... node buy.mjs</code></pre>
<p><code>buy.mjs</code>, whole. <code>BUYER_KEY</code> is the private key of a wallet with dollars:</p>
<pre><code>${formatBuyerProgram(request)}</code></pre>`
}

function formatBuyerProgram({ url, body }: BoughtRequest): string {
  const init =
    body === undefined
      ? ''
      : `, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(${JSON.stringify(body)}),
}`
  return `import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { privateKeyToAccount } from 'viem/accounts'

const wallet = privateKeyToAccount(process.env.BUYER_KEY)
const pay = wrapFetchWithPaymentFromConfig(fetch, {
  schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(wallet) }],
})
const reply = await pay(${JSON.stringify(url)}${init})
console.log(reply.status, await reply.text(), reply.headers.get('x-receipt-id'))`
}
