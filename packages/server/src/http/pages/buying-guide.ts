import { renderBuyerProgram, sdkPackage } from './buyer-program.ts'
import { type Html, html } from './html.ts'

/** The anchor of the guide, to which the introduction of the page links. */
export const buyingAnchor = 'buying'

/** Renders what a developer of a buyer needs: whole programs for the stock client and the public SDK, and curl. */
export function renderBuyingGuide(baseUrl: string): Html {
  const body = { root: 'shop::prices', find: { item: 'tea' }, limit: 10 }
  const url = `${baseUrl}/list`
  return html`
<section class="area" id="${buyingAnchor}"><h2>Buying</h2>
<p>Put the application and the collection that you want in the place of <code>shop::prices</code>. A 402 names the most that the request can cost; the charge is for what came, and the rest stays on your balance (<a href="#getWallet">your balance</a>, <a href="#withdrawFromWallet">take it out</a>). The same request with the same payment gets the same answer again.</p>
<h3>With the stock x402 client</h3>
${renderBuyerProgram({ url, body })}
<p>The client pays at most a dollar for one request; <code>spendControls: { maxAmountPerPayment: '$5' }</code> beside <code>schemes</code> allows more.</p>
<p>On a devnet <code>curl ${baseUrl}/devnet/faucet -H 'Content-Type: application/json' -d '{"address":"0x..."}'</code> fills a wallet.</p>
<h3>With the public SDK</h3>
<pre><code>npm install ${sdkPackage}</code></pre>
<pre><code>${formatSdkProgram(baseUrl)}</code></pre>
<p>A transfer that you make yourself pays where the 402 offers <code>"paymentMethod": "native"</code>. <code>store</code> takes a callback that makes or signs the payment.</p>
<h3>With curl</h3>
<pre><code>curl ${url} -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'</code></pre>
<p>The 402 lists in <code>accepts</code> how you can pay: <code>maxAmountRequired</code> in atomic units (1 cent is 10000), <code>payTo</code>, <code>asset</code>, and <code>extra.quoteId</code>, which is good for five minutes. Sign an EIP-3009 authorization for it and send the request again with <code>X-PAYMENT</code> (x402 version 1) or <code>PAYMENT-SIGNATURE</code> (version 2). <code>x-receipt-id</code> of the reply names <a href="#getReceipt">its receipt</a>.</p>
</section>`
}

function formatSdkProgram(baseUrl: string): string {
  return `import { createClient } from '@onchaindb/sdk'

const client = createClient({ endpoint: ${JSON.stringify(baseUrl)}, appId: 'shop' })
client.on('error', () => undefined)
const query = client.queryBuilder().collection('prices').selectAll().limit(10)
const [quoteId, hash] = process.argv.slice(2)
if (hash !== undefined) {
  console.log((await query.executeWithPayment(quoteId, hash)).records)
} else {
  // Transfer the amount to payTo, and run this again with the quote and the hash of your transaction.
  const { quote } = await query.execute().catch((error) => error)
  const native = quote.allOptions.find(({ extra }) => extra.paymentMethod === 'native')
  console.log(native.extra.quoteId, native.payTo, native.maxAmountRequired, native.asset)
}`
}
