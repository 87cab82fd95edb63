import { buyerPackages } from './buyer-program.ts'

/**
 * Renders what a program needs that knows nothing but the address of the service: what is for sale, its price, how to
 * pay, and how to check a receipt. The form is that of llms.txt (https://llmstxt.org), which agents look for.
 */
export function renderGuideText(baseUrl: string): string {
  const app = `${baseUrl}/api/apps/APP`
  return `# Tollbase

> Applications sell records, files and answers of queries here over HTTP 402 (x402). Amounts are atomic units of the token: with USDC, 1 cent is 10000.

Put the id of an application in the place of APP; its seller tells it, as the service lists no applications. The names of collections and queries stand in the place of NAME.

## What is for sale

- [Collections](${app}/collections): those that strangers may read or buy, with their fields
- [Preview](${app}/collections/NAME/preview): fields, price and a free sample of one collection
- [Queries](${app}/queries): predefined queries with their parameters, columns and prices
- [Queries as OpenAPI](${baseUrl}/api/queries/APP/openapi.json): the same, for programs
- [Prices](${app}/pricing): the rules of all prices

## What it costs

A request without a payment is answered 402 with the most that it can cost, in \`accepts[].maxAmountRequired\` of the body (\`accepts[].amount\` of the header \`PAYMENT-REQUIRED\`, in base64); nothing is charged. The charge is for what came, never more, and an error costs nothing. What a payment moves beyond the charge is on the payer's balance and pays for the next requests.

- \`POST ${baseUrl}/list\` with \`{"root":"APP::NAME","find":{"item":"tea"},"limit":10}\`: records. Where rows have a price, \`limit\` is needed and bounds it
- \`GET ${baseUrl}/api/queries/APP/NAME/data?item=tea\`: a predefined query
- \`GET ${app}/views/NAME/data?limit=10\`: a view
- \`GET ${app}/blobs/COLLECTION/BLOB?format=raw\`: a file

## Pay

- [Programs](${baseUrl}/docs#buying): for the stock x402 client (${buyerPackages}), the public SDK and curl. The stock client pays at most a dollar for one request unless \`spendControls\` says more
- [Networks](${baseUrl}/.well-known/tollbase): the networks and tokens that are taken
- Send the same request again with the payment in \`PAYMENT-SIGNATURE\` (x402 version 2) or \`X-PAYMENT\` (version 1). If an answer is lost, or is 503, send the same request with the same payment again, never with a new one: it is paid once, and the answer has the same bytes
- \`GET ${baseUrl}/api/wallets/ADDRESS\`: the balance of a wallet

## Check the receipt

The header \`X-Receipt-Id\` of a paid answer names its receipt, \`GET ${baseUrl}/api/receipts/ID\`. It is right where

- \`result_hash\` is the SHA-256 (hex) of the answer's body
- \`request_hash\` is the SHA-256 (hex) of \`tollbase-request-v1\\n<METHOD>\\n<path>\\n<query without ?>\\n<SHA-256 of the body in hex>\`
- \`signature\` (base64) is an Ed25519 signature over the receipt without \`signature\`, as canonical JSON (RFC 8785), by \`receipt_public_key\` of [the service](${baseUrl}/.well-known/tollbase). The key is the last 32 bytes of the base64 behind its second \`+\`. Take it once, over a connection that you trust

## More

- [Interface](${baseUrl}/docs): every request, as a page
- [OpenAPI](${baseUrl}/openapi.json): the same, for programs; it is large
`
}
