import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Directus 12 as for production, with all that a point lookup does not need switched off: no studio, no request log,
 * no extensions, no limits of rates or load, no telemetry, no WebSockets. Its system tables are in the schema
 * `directus`, the records in `peers.items`, which anyone may read: a token would cost a query for each request. The
 * cache of answers is off (its default): every answer is to be read; those of schema and permissions are on.
 */
const { connection, poolSize } = JSON.parse(process.argv[2] ?? '{}')
const folder = mkdtempSync(join(tmpdir(), 'tollbase-bench-directus-'))
const token = randomBytes(16).toString('hex')

Object.assign(process.env, {
  NODE_ENV: 'production',
  HOST: '127.0.0.1',
  SECRET: randomBytes(32).toString('hex'),
  DB_CLIENT: 'pg',
  DB_HOST: connection.host,
  DB_PORT: String(connection.port),
  DB_USER: connection.user,
  DB_PASSWORD: '',
  DB_DATABASE: connection.database,
  DB_SEARCH_PATH: 'array:directus,peers',
  DB_POOL__MIN: String(poolSize),
  DB_POOL__MAX: String(poolSize),
  ADMIN_EMAIL: 'admin@example.com',
  ADMIN_PASSWORD: token,
  ADMIN_TOKEN: token,
  LOG_LEVEL: 'error',
  SERVE_APP: 'false',
  TELEMETRY: 'false',
  WEBSOCKETS_ENABLED: 'false',
  PRESSURE_LIMITER_ENABLED: 'false',
  EXTENSIONS_PATH: join(folder, 'extensions'),
  STORAGE_LOCAL_ROOT: join(folder, 'uploads'),
  TEMP_PATH: join(folder, 'temporary'),
  CONFIG_PATH: join(folder, 'none.env'),
})

const cli = fileURLToPath(import.meta.resolve('@directus/api/cli/run.js'))
execFileSync(process.execPath, [cli, 'bootstrap'], { stdio: ['ignore', 'ignore', 'inherit'] })

const { createServer } = await import('@directus/api/server')
const server = await createServer()
server.listen(0, '127.0.0.1', async () => {
  const { port } = server.address()
  await publish(`http://127.0.0.1:${port}`)
  process.stdout.write(`listening on ${port}\n`)
})

process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
// An end by a signal would leave no profile behind.
process.once('SIGTERM', () => process.exit(0))

/** Registers the table as a collection, and lets anyone read it. */
async function publish(url) {
  await admin(`${url}/collections/items`, { method: 'PATCH', body: { meta: { hidden: false } } })
  const everyone = 'filter[role][_null]=true&filter[user][_null]=true&fields=policy'
  const [{ policy }] = await admin(`${url}/access?${everyone}`, { method: 'GET' })
  const granted = await admin(`${url}/permissions?filter[policy][_eq]=${policy}`, { method: 'GET' })
  if (granted.some((one) => one.collection === 'items')) return
  const body = { policy, collection: 'items', action: 'read', fields: ['*'] }
  await admin(`${url}/permissions`, { method: 'POST', body })
}

async function admin(url, { method, body }) {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`)
  return text === '' ? undefined : JSON.parse(text).data
}
