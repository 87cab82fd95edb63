import { createHash } from 'node:crypto'
import type { PredefinedQuery } from '@tollbase/contract/queries'
import type { Static } from 'typebox'
import { formatDollars } from '../../base/format-usd.ts'
import { renderBuyerProgram } from './buyer-program.ts'
import { docsStyle } from './docs-style.ts'
import { type Html, html } from './html.ts'

type QueryInfo = Static<typeof PredefinedQuery>
type PageSite = { readonly app: string; readonly baseUrl: string }

/** Content security policy of the page: its own style, and nothing from anywhere else. */
const policy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(docsStyle).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

/**
 * Renders a predefined query as a page for its possible callers. The owner's text appears there as text, never as
 * markup.
 */
export function renderQueryPage(
  view: QueryInfo,
  place: PageSite,
): { readonly markup: string; readonly policy: string } {
  const url = exampleUrl(view, place)
  const { markup } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${view.name} of ${place.app}</title>
<style>${{ markup: docsStyle }}</style>
</head>
<body>
<main>
<header class="intro">
<h2>${view.name}</h2>
${view.description !== null && html`<p>${view.description}</p>`}
<p><span class="method get">GET</span> <code>${view.endpoint}</code></p>
<p>Version ${view.version} of ${view.versions.length}; ${view.public ? 'anyone may ask.' : `a key of ${place.app} is needed (X-App-Key).`} The queries of this application as data: <a href="/api/queries/${place.app}/openapi.json">openapi.json</a>.</p>
</header>
<section class="area"><h2>Price</h2>${priceText(view)}</section>
<section class="area"><h2>Parameters</h2>${parameterTable(view)}</section>
<section class="area"><h2>Example</h2>
<h3>curl</h3><pre><code>curl '${url}'</code></pre>
<h3>JavaScript, paying what it costs</h3>${renderBuyerProgram({ url })}
${view.example_request !== undefined && html`<h3>A request</h3><pre><code>${jsonText(view.example_request)}</code></pre>`}
<h3>Reply</h3><pre><code>${replyText(view)}</code></pre>
<p>With <code>Accept: text/csv</code> or <code>format=csv</code> the rows come as CSV, with <code>application/x-ndjson</code> or <code>format=ndjson</code> one JSON object a line.</p>
</section>
</main>
</body>
</html>
`
  return { markup, policy }
}

function priceText({ price, rate_limit: rate }: QueryInfo): Html {
  const prices = [
    [price.per_access, 'for each request'],
    [price.per_row, 'for each row that is given'],
    [price.per_kb, 'for each started KB of rows'],
  ] as const
  const parts = prices.filter(([amount]) => amount !== '0')
  const text =
    parts.length === 0
      ? html`<p>Free, as far as the application itself goes.</p>`
      : html`<ul>${parts.map(([amount, what]) => html`<li><code>${amount}</code> atomic units (${formatDollars(BigInt(amount))}) ${what}</li>`)}</ul>`
  const limit =
    rate !== null &&
    html`<p>At most ${rate.requests} requests in ${rate.window_seconds} seconds from each caller.</p>`
  return html`${text}<p>A request that costs something answers <strong>402</strong> and names the price (x402); sources of other applications are part of it.</p>${limit}`
}

function parameterTable({ parameters }: QueryInfo): Html {
  const rows = parameters.map(
    (one) =>
      html`<tr><td>${one.name}${one.required === true && html` <span class="must" title="required">*</span>`}</td><td class="type">${typeText(one)}</td><td>${one.description ?? ''}<span class="bounds">${boundsText(one)}</span></td></tr>`,
  )
  const own = new Set(parameters.map(({ name }) => name))
  const common = (
    [
      ['limit', 'integer', 'rows at most'],
      ['offset', 'integer', 'rows that are passed over'],
      ['version', 'integer', 'of the query; the newest when not given'],
      ['format', 'json | csv | ndjson', 'of the answer'],
    ] as const
  ).filter(([name]) => !own.has(name))
  const rest = common.map(
    ([name, type, says]) =>
      html`<tr><td>${name}</td><td class="type">${type}</td><td>${says}</td></tr>`,
  )
  return html`<div class="scroll"><table><thead><tr><th>Name</th><th>Type</th><th>Meaning</th></tr></thead><tbody>${rows}${rest}</tbody></table></div>`
}

type Parameter = QueryInfo['parameters'][number]

function typeText({ type = 'string', items, values }: Parameter): string {
  if (values !== undefined) return values.join(' | ')
  return type === 'list' ? `list of ${items ?? 'string'}` : type
}

function boundsText(parameter: Parameter): string {
  const words = [
    ['at least', parameter.min],
    ['at most', parameter.max],
    ['min. length', parameter.minLength],
    ['max. length', parameter.maxLength],
    ['max. values', parameter.maxItems],
    ['pattern', parameter.pattern],
    ['default', parameter.default],
  ] as const
  return words
    .filter(([, value]) => value !== undefined)
    .map(([word, value]) => `${word} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}

/** Builds an example URL with a value for each required parameter. */
function exampleUrl({ endpoint, parameters }: QueryInfo, { baseUrl }: PageSite): string {
  const query = new URLSearchParams()
  for (const one of parameters) {
    const given = one.default ?? (one.required === true ? makeExample(one) : undefined)
    for (const value of Array.isArray(given) ? given : [given])
      if (value !== undefined) query.append(one.name, String(value))
  }
  const text = query.toString().replaceAll("'", '%27')
  return `${baseUrl}${endpoint}${text === '' ? '' : `?${text}`}`
}

function makeExample({ type, items, values, min }: Parameter): unknown {
  if (values !== undefined) return values[0]
  switch (type === 'list' ? items : type) {
    case 'number':
    case 'integer':
      return min ?? 1
    case 'boolean':
      return true
    case 'date':
      return '2026-01-31'
    default:
      return 'value'
  }
}

function replyText(view: QueryInfo): string {
  if (view.example_response !== undefined) return jsonText(view.example_response)
  const columns = view.columns ?? ['id']
  return jsonText({
    data: [Object.fromEntries(columns.map((name) => [name, '…']))],
    count: 1,
    query: view.name,
    version: view.version,
    as_of: { block_height: 42, sequence: 7 },
  })
}

function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? ''
}
