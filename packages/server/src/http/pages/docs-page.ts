import { createHash } from 'node:crypto'
import type { OpenApi, Operation, Response } from '@tollbase/contract/openapi'
import type { Parameter } from '@tollbase/contract/openapi-components'
import { isRight, type Permitted } from '@tollbase/contract/permissions'
import { shown } from '@tollbase/contract/route'
import { awaitTurn } from '../../base/await-turn.ts'
import { isRecord } from '../../base/is-record.ts'
import { buyingAnchor, renderBuyingGuide } from './buying-guide.ts'
import { type FieldRow, listExamples, listFieldRows, makeExample } from './docs-schema.ts'
import { docsScript, docsStyle } from './docs-style.ts'
import { type Html, html } from './html.ts'

type Endpoint = { readonly method: string; readonly path: string; readonly operation: Operation }
type Context = { readonly document: OpenApi; readonly baseUrl: string }

/**
 * Renders the interface as one page, one endpoint in each turn of the event loop: together they take 0.3 s. The page
 * loads nothing from the network, which its own content security policy enforces; without JavaScript only the filter
 * is missing.
 */
export async function renderDocsPage(
  document: OpenApi,
  options: { readonly baseUrl: string },
): Promise<string> {
  const context = { document, baseUrl: options.baseUrl }
  const groups = document.tags.map(({ name }) => ({
    name,
    endpoints: listEndpoints(document, name),
  }))
  const areas: Html[] = []
  for (const group of groups) areas.push(await area(group, context))
  const policy = `default-src 'none'; style-src '${hashText(docsStyle)}'; script-src '${hashText(docsScript)}'; base-uri 'none'; form-action 'none'`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${document.info.title} ${document.info.version}: interface</title>
<style>${{ markup: docsStyle }}</style>
</head>
<body>
<div class="layout">
<nav>
<h1>${document.info.title}<small>interface ${document.info.version}</small></h1>
<input id="filter" type="search" placeholder="Path, word or error code" aria-label="Filter the endpoints" hidden>
<p id="nothing" role="status" hidden>No endpoint has these words.</p>
<div class="list">${groups.map(navigation)}</div>
</nav>
<main>
${introduction(context)}
${areas}
${renderBuyingGuide(context.baseUrl)}
</main>
</div>
<script>${{ markup: docsScript }}</script>
</body>
</html>
`.markup
}

type Group = { readonly name: string; readonly endpoints: readonly Endpoint[] }

function navigation(group: Group): Html {
  return html`<div data-group><h2>${group.name}</h2><ul>${group.endpoints.map(
    (endpoint) => html`
<li data-words="${formatSearchWords(endpoint)}"><a href="#${endpoint.operation.operationId}" title="${endpoint.path}">${method(endpoint)}${shortPath(endpoint.path)}</a></li>`,
  )}</ul></div>`
}

function introduction({ document, baseUrl }: Context): Html {
  return html`<header class="intro">
<h2>${document.info.title} interface</h2>
<p>${withCode(document.info.description)} The same as data: <a href="/openapi.json">openapi.json</a>.</p>
</header>
<div class="guide">
<section><h3>Keys</h3><p>Send a key of the application in <code>X-App-Key</code>, <code>X-API-Key</code>, <code>Authorization: Bearer</code> or <code>?api_key=</code>. Two different keys in one request are refused.</p></section>
<section><h3>Payment</h3><p>A call that costs something answers <strong>402</strong> with the price (x402). Pay, and repeat the same request with <code>PAYMENT-SIGNATURE</code> or <code>X-PAYMENT</code>; a retry with the same payment costs nothing. <a href="#${buyingAnchor}">Programs that buy</a>: x402, the SDK, curl.</p></section>
<section><h3>Errors</h3><p>Every refusal but 402 is <code>{error, code, details?, request_id}</code>. Programs read <code>code</code>; <code>request_id</code> names the request in the log.</p></section>
<section><h3>Base address</h3><p><code>${baseUrl}</code></p><p>Bodies are JSON. Money is a decimal string of atomic units.</p></section>
</div>`
}

async function area(group: Group, context: Context): Promise<Html> {
  const cards: Html[] = []
  for (const endpoint of group.endpoints) {
    cards.push(endpointCard(endpoint, context))
    await awaitTurn()
  }
  return html`
<section class="area" data-group><h2>${group.name}</h2>${cards}</section>`
}

/** Renders one endpoint. The anchor is inside the body: following a link to it opens the card, without a script. */
function endpointCard(endpoint: Endpoint, context: Context): Html {
  const { operation } = endpoint
  const aliases = operation['x-aliases'] ?? []
  return html`
<details data-words="${formatSearchWords(endpoint)}">
<summary>${method(endpoint)}${pathText(endpoint.path)}<span class="tags">${operation['x-paid'] && html`<span class="tag paid">can cost</span>`}<span class="tag">${describeAccessShortly(operation)}</span></span><span class="says">${withCode(operation.summary)}</span></summary>
<div class="body" id="${operation.operationId}">
${operation.description !== undefined && html`<p>${withCode(operation.description)}</p>`}
<p>${describeAccess(operation)}${operation['x-paid'] && ' Without a payment, a call that costs something answers 402 and names the price.'} ${shown[operation['x-shows']]}</p>
${aliases.length > 0 && html`<p>Also at ${aliases.map((alias, i) => html`${i > 0 && ', '}<code>${alias}</code>`)}.</p>`}
${parameterTable(operation, context)}
${operation.requestBody && schemaTable(operation.requestBody.required ? 'Request body' : 'Request body (optional)', operation.requestBody.content, context)}
${replies(operation, context)}
${refusals(operation)}
<h3>Example</h3><pre><code>${formatCurl(endpoint, context)}</code></pre>
</div>
</details>`
}

/** The kinds of callers that a route can ask for beside keys with a right. */
type OtherAccess = Exclude<Operation['x-access'], Permitted>

function describeAccessShortly({ 'x-access': access }: Operation): string {
  return isRight(access) ? `${access} key` : accessTags[access]
}

const accessTags: Readonly<Record<OtherAccess, string>> = {
  public: 'anyone',
  operator: 'operator',
  owner: 'owner',
  registrar: 'operator or owner',
  'by-policy': 'by policy',
}

function describeAccess({ 'x-access': access }: Operation): string {
  return isRight(access)
    ? `Needs a key of the application with ${access} permission.`
    : accessTexts[access]
}

const accessTexts: Readonly<Record<OtherAccess, string>> = {
  public: 'Anyone may call this.',
  operator: "Needs the operator's key.",
  owner: "Needs the operator's key, or a request signed by a wallet.",
  registrar:
    "Needs the operator's key; a request signed by a wallet is enough where the service lets wallets register.",
  'by-policy':
    'What is addressed decides who may call this: its owner makes it public, or asks for a key.',
}

function parameterTable(operation: Operation, { document }: Context): Html | undefined {
  const parameters = listParameters(operation, document)
  if (parameters.length === 0) return undefined
  const rows = parameters.map((parameter) => {
    const [row] = listFieldRows(parameter.schema, document.components.schemas)
    return html`<tr><td>${parameter.name}${parameter.required && required}</td><td>${parameter.in}</td><td class="type">${row?.type}</td><td>${withCode(parameter.description ?? '')}${bounds(row)}</td></tr>`
  })
  return html`<h3>Parameters</h3><div class="scroll"><table><thead><tr><th>Name</th><th>In</th><th>Type</th><th>Meaning</th></tr></thead><tbody>${rows}</tbody></table></div>`
}

const required = html` <span class="must" title="required">*</span>`

function bounds(row: FieldRow | undefined): Html | false {
  return row !== undefined && row.bounds !== '' && html`<span class="bounds">${row.bounds}</span>`
}

function schemaTable(title: string, content: Response['content'], { document }: Context): Html {
  const [mediaType = '', media] = Object.entries(content)[0] ?? []
  const rows = listFieldRows(media?.schema ?? {}, document.components.schemas)
  const heading = html`<h3>${title} <code>${mediaType}</code></h3>`
  return html`${heading}<div class="scroll"><table><thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead><tbody>${rows.map(fieldRow)}</tbody></table></div>`
}

function fieldRow(row: FieldRow): Html {
  const cut = Math.max(row.path.lastIndexOf('.') + 1, 0)
  const name = html`<span class="parent">${row.path.slice(0, cut)}</span>${row.path.slice(cut) || 'whole body'}`
  return html`<tr><td><span class="d${Math.min(row.depth, 5)}">${name}${row.path !== '' && row.required && required}</span></td><td class="type">${row.type}</td><td>${withCode(row.description)}${bounds(row)}</td></tr>`
}

function replies(operation: Operation, context: Context): readonly Html[] {
  return Object.entries(operation.responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([status, response]) => schemaTable(`Reply ${status}`, response.content, context))
}

function refusals(operation: Operation): Html {
  const rows = Object.entries(operation.responses).flatMap(([status, response]) => {
    const texts = response.description.split('\n\n')
    return (response['x-error-codes'] ?? []).map(
      (code, i) =>
        html`<tr><td class="status">${status}</td><td class="type">${code}</td><td>${texts[i]?.replace(`\`${code}\`: `, '')}</td></tr>`,
    )
  })
  return html`<h3>Errors</h3><div class="scroll"><table><tbody>${rows}</tbody></table></div>`
}

/** Formats a request that can be pasted into a shell; keys are shell variables. */
function formatCurl({ method, path, operation }: Endpoint, { document, baseUrl }: Context): string {
  const { schemas } = document.components
  const parameters = listParameters(operation, document)
  const values = parameters.map((one) => ({
    ...one,
    value: makeExample(one.name, one.schema, schemas),
  }))
  const filled = values
    .filter((one) => one.in === 'path')
    .reduce((url, one) => url.replace(`{${one.name}}`, encodeURIComponent(String(one.value))), path)
  const query = values
    .filter((one) => one.in === 'query')
    .filter((one) => one.required || listExamples(one.schema).length > 0)
    .flatMap((one) => (isRecord(one.value) ? Object.entries(one.value) : [[one.name, one.value]]))
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${shellQuoted(`${baseUrl}${filled}${query.length > 0 ? `?${query.join('&')}` : ''}`)}`,
    ...listCredentials(operation),
    ...formatBody(operation, document),
  ].join(' \\\n  ')
}

/** Formats the body of an example; one that may be left out is shown where it has an example of its own. */
function formatBody({ requestBody }: Operation, document: OpenApi): readonly string[] {
  const [[mediaType = '', media] = []] = Object.entries(requestBody?.content ?? {})
  const { schema } = media ?? {}
  if (schema === undefined) return []
  const isShown = requestBody?.required === true || listExamples(schema).length > 0
  const example = makeExample('body', schema, document.components.schemas)
  if (mediaType === 'multipart/form-data' && isRecord(example))
    return Object.entries(example).map(([name, value]) => {
      // curl sends the bytes of a file that is named behind an @.
      const isFile = isRecord(schema.properties) && isBinary(schema.properties[name])
      return `-F ${shellQuoted(`${name}=${isFile ? '@' : ''}${value}`)}`
    })
  if (mediaType !== 'application/json' || !isShown) return []
  return [
    `-H 'content-type: application/json'`,
    `-d ${shellQuoted(JSON.stringify(example, null, 2))}`,
  ]
}

function isBinary(schema: unknown): boolean {
  return isRecord(schema) && schema.format === 'binary'
}

function listCredentials({ 'x-access': access }: Operation): readonly string[] {
  return isRight(access) ? ['-H "X-App-Key: $APP_KEY"'] : (credentials[access] ?? [])
}

const credentials: Partial<Readonly<Record<OtherAccess, readonly string[]>>> = {
  operator: ['-H "Authorization: Bearer $OPERATOR_KEY"'],
  owner: ['-H "Authorization: Bearer $OPERATOR_KEY"'],
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function listParameters(operation: Operation, document: OpenApi): readonly Parameter[] {
  const shared: Readonly<Record<string, Parameter>> = document.components.parameters
  return (operation.parameters ?? []).flatMap((parameter) => {
    if (!('$ref' in parameter)) return [parameter]
    const found = shared[parameter.$ref.slice(parameter.$ref.lastIndexOf('/') + 1)]
    return found ? [found] : []
  })
}

function listEndpoints(document: OpenApi, tag: string): readonly Endpoint[] {
  return (
    Object.entries(document.paths)
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([name, operation]) => ({
          method: name.toUpperCase(),
          path,
          operation,
        })),
      )
      .filter(({ operation }) => operation.tags.includes(tag))
      // Aliases are listed with the operation itself.
      .filter(({ operation }) => operation['x-alias-of'] === undefined)
  )
}

function method(endpoint: Endpoint): Html {
  return html`<span class="method ${endpoint.method.toLowerCase()}">${endpoint.method}</span>`
}

function pathText(path: string): Html {
  const parts = path.split(/(\{\w+\})/)
  return html`<span class="path">${parts.map((part) => (part.startsWith('{') ? html`<span class="param">${part}</span>` : part))}</span>`
}

/** As many signs of a path as the narrow list shows. */
const shownSigns = 27

/** Shortens a path for the narrow list: its end tells it from others of its area, and its beginning says little. */
function shortPath(path: string): string {
  const short = path.replace(/^\/api\/apps\/\{app\}(?=\/)/, '…')
  const parts = short.split('/')
  while (parts.length > 1 && `…/${parts.join('/')}`.length > shownSigns) parts.shift()
  return short.length <= shownSigns ? short : `…/${parts.join('/')}`
}

function formatSearchWords({ method: name, path, operation }: Endpoint): string {
  const codes = Object.values(operation.responses).flatMap((one) => one['x-error-codes'] ?? [])
  const words = [name, path, operation.operationId, operation.summary, ...operation.tags, ...codes]
  return [...words, operation['x-paid'] ? 'paid' : 'free'].join(' ').toLowerCase()
}

/** Renders `marked` parts of a text as code. */
function withCode(text: string): readonly Html[] {
  return text
    .split('`')
    .map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))
}

function hashText(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}
