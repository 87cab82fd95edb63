import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { getBundle } from '../support/bundle.ts'
import { startProgram } from '../support/program.ts'

const repository = join(import.meta.dirname, '../..')
const dataDir = mkdtempSync(join(tmpdir(), 'tollbase-readme-'))
const readme = readFileSync(join(repository, 'README.md'), 'utf8')
const program = startProgram(dataDir, ['--devnet'])
let url = ''

beforeAll(async () => {
  url = await program.url
})
afterAll(async () => {
  await program.end('SIGTERM')
  rmSync(dataDir, { recursive: true, force: true })
})

/** The commands of a section as they are printed, on this service and its folder. */
function readCommands(section: string): string {
  const [, text = ''] = readme.split(`## ${section}\n`)
  const [, commands = ''] = /```sh\n([\s\S]*?)```/.exec(text) ?? []
  expect(commands, section).not.toBe('')
  return commands
    .replaceAll('localhost:9092', new URL(url).host)
    .replaceAll('tollbase-data', dataDir)
}

/** Returns what the sections' commands print, run one after the other in one shell. */
function run(...sections: string[]): string {
  return execFileSync('bash', ['-euc', sections.map(readCommands).join('\n')], {
    cwd: repository,
    env: { ...process.env, TOLLBASE_URL: url },
    encoding: 'utf8',
  })
}

describe('the README', () => {
  test('the README sells to a stranger by the commands that it prints, and nothing else', () => {
    const printed = run('Sell', 'Buy')
    expect(printed).not.toContain('"error"')
    expect(printed).toMatch(/^price {4}at most \$0\.01$/m)
    expect(printed).toMatch(/^record {3}\{"id":"1","item":"tea","eur":2.5\}$/m)
    expect(printed).toMatch(/^cost {5}\$0\.001, and \$0\.009 /m)
    expect(printed).toMatch(/^receipt {2}http:\/\/\S+\/api\/receipts\/rcpt_/m)
  })

  test('an answer that the example of buyers keeps is the one of its receipt', async () => {
    const reply = join(dataDir, 'reply.json')
    const printed = execFileSync('node', ['examples/buy.mjs', 'shop::prices', '{"limit":10}'], {
      cwd: repository,
      env: { ...process.env, TOLLBASE_URL: url, REPLY: reply },
      encoding: 'utf8',
    })
    const [, address = ''] = /^receipt {2}(\S+)$/m.exec(printed) ?? []
    const receipt = join(dataDir, 'receipt.json')
    writeFileSync(receipt, await (await fetch(address)).text())
    const facts = await (await fetch(`${url}/.well-known/tollbase`)).text()
    const key: string = JSON.parse(facts).receipt_public_key
    const command = [getBundle('packages/cli/src/main.ts'), 'verify', receipt, '--key', key]
    const verified = execFileSync('node', [...command, '--reply', reply], { encoding: 'utf8' })
    expect(verified).toMatch(/receipt\.json: valid\n$/)
  })

  test('the example of wallets pays in, lets a key spend from it, and takes out what it paid in', async () => {
    const runExample = (env: Record<string, string>, ...given: string[]) =>
      execFileSync('node', ['examples/wallet.mjs', ...given], {
        cwd: repository,
        env: { ...process.env, TOLLBASE_URL: url, ...env },
        encoding: 'utf8',
      })
    const paid = runExample({}, 'deposit', '1000000')
    expect(paid).toMatch(/^balance {3}1000000, and 0 on its way out$/m)
    const [, key = ''] = /BUYER_KEY=(0x[0-9a-f]{64})/.exec(paid) ?? []
    const granted = runExample({ BUYER_KEY: key }, 'grant', '100000', 'shop')
    const [, userKey = ''] = /^key {7}(app_\S+) /m.exec(granted) ?? []
    const bought = await fetch(`${url}/list`, {
      method: 'POST',
      headers: { 'x-user-key': userKey },
      body: JSON.stringify({ root: 'shop::prices', limit: 10 }),
    })
    expect(bought.status).toBe(200)
    const taken = runExample({ BUYER_KEY: key }, 'withdraw', '400000')
    expect(taken).toMatch(/^outcome {3}confirmed, by the transaction 0x/m)
    expect(taken).toMatch(/^balance {3}599000, and 0 on its way out$/m)
  })

  test('the example that pays sends a write that has a price, and says what it cost', async () => {
    const key = readFileSync(join(dataDir, 'operator-key'), 'utf8').trim()
    const made = await fetch(`${url}/api/apps/shop/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ permissions: ['Read', 'Write', 'Admin'] }),
    })
    const appKey: string = JSON.parse(await made.text()).key
    const priced = await fetch(`${url}/api/apps/shop/indexes`, {
      method: 'POST',
      headers: { 'x-app-key': appKey },
      body: JSON.stringify({ collection: 'places', index_type: 'price', field_name: 'fee' }),
    })
    expect(priced.ok).toBe(true)
    const body = JSON.stringify({ root: 'shop::places', data: [{ id: '1', fee: 0.25 }] })
    const printed = execFileSync('node', ['examples/pay.mjs', 'POST', '/store', body], {
      cwd: repository,
      env: { ...process.env, TOLLBASE_URL: url, APP_KEY: appKey },
      encoding: 'utf8',
    })
    expect(printed).toMatch(/^answer {3}20[02] \{"ticket_id":"task_/m)
    expect(printed).toMatch(/^cost {5}\$0\.25$/m)
  })

  test('the example of channels deposits once, buys by vouchers, and gets the rest back', () => {
    const printed = execFileSync(
      'node',
      ['examples/channel.mjs', 'shop::prices', '{"find":{"item":"tea"},"limit":10}', '3'],
      {
        cwd: repository,
        env: { ...process.env, TOLLBASE_URL: url, CHANNELS: join(dataDir, 'channels') },
        encoding: 'utf8',
      },
    )
    expect(printed.match(/^deposit {2}\$1$/gm)).toHaveLength(1)
    expect(printed).toMatch(/^answer {3}1 records, \$0\.001; \$0\.003 in all$/m)
    expect(printed).toMatch(/^refund {3}\$0\.997, by the transaction 0x[0-9a-f]{64}$/m)
  })

  test('the example of channels says of a free answer that there is nothing to pay', async () => {
    const made = await fetch(`${url}/api/apps/shop/collections`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${readFileSync(join(dataDir, 'operator-key'), 'utf8').trim()}`,
        'content-type': 'application/json',
      },
      body: '{"name":"gifts","access_policy":{"read":"public"}}',
    })
    expect(made.status).toBe(201)
    const env = { ...process.env, TOLLBASE_URL: url, CHANNELS: join(dataDir, 'free') }
    const args = ['examples/channel.mjs', 'shop::gifts']
    await expect(promisify(execFile)('node', args, { cwd: repository, env })).rejects.toMatchObject(
      { stderr: 'the answer is free: there is nothing to pay by a channel\n' },
    )
  })

  test('the examples end with one line where a service has no payment network, and where none is there', async () => {
    const bare = createServer((_, reply) =>
      reply.end('{"origin":"http://localhost","networks":[]}'),
    )
    await new Promise<void>((resolve) => bare.listen(0, '127.0.0.1', resolve))
    const at = `http://127.0.0.1:${(bare.address() as AddressInfo).port}`
    const runs = [
      ['examples/buy.mjs', 'shop::prices'],
      ['examples/channel.mjs', 'shop::prices'],
      ['examples/pay.mjs', 'POST', '/store', '{}'],
      ['examples/wallet.mjs', 'show'],
    ]
    const readProblem = async (args: readonly string[]) => {
      const env = { ...process.env, TOLLBASE_URL: at }
      const ended = promisify(execFile)('node', args, { cwd: repository, env })
      return ended.catch(({ stderr }: { stderr: string }) => stderr)
    }
    for (const args of runs)
      expect(await readProblem(args)).toMatch(/^http:\S+ has no payment network: [a-z ]+\n$/)
    await new Promise((resolve) => bare.close(resolve))
    expect(await readProblem(runs[0] ?? [])).toMatch(/^fetch failed: .*ECONNREFUSED.*\n$/)
  })

  test('the README sells views and queries by the commands that it prints', () => {
    const key = `KEY=$(curl -s ${url}/api/apps/shop/keys -H "Authorization: Bearer $(cat ${dataDir}/operator-key)" -H 'Content-Type: application/json' -d '{"permissions":["Read","Write","Admin"]}' | sed 's/.*"key":"\\([^"]*\\)".*/\\1/')`
    const printed = execFileSync(
      'bash',
      ['-euc', `${key}\n${readCommands('Sell more than rows')}`],
      {
        cwd: repository,
        encoding: 'utf8',
      },
    )
    expect(printed).not.toContain('"error"')
    expect(printed).toContain('"data":[{"item":"tea","eur":2.50}]')
  })
})
