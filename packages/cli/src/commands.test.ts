import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatVerifierKey } from '@tollbase/verify/checkpoint'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { runCommand } from './commands.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-cli-'))

afterAll(() => rmSync(folder, { recursive: true, force: true }))
afterEach(() => vi.restoreAllMocks())

/** Returns the exit code and the text written to stderr. */
async function run(...args: string[]): Promise<{ code: number; said: string }> {
  let said = ''
  const note = (text: unknown) => {
    said += `${String(text)}\n`
    return true
  }
  vi.spyOn(process.stderr, 'write').mockImplementation(note)
  vi.spyOn(console, 'error').mockImplementation(note)
  return { code: await runCommand(args), said }
}

function configFile(content: string): string {
  const path = join(folder, 'config.json')
  writeFileSync(path, content)
  return path
}

describe('mistakes on the command line', () => {
  test('a mistake in an option is answered with the option that was meant', async () => {
    const { code, said } = await run('serve', '--prot', '1')
    expect(code).toBe(2)
    expect(said).toContain("unknown option '--prot'")
    expect(said).toContain('Did you mean --port?')
    expect(said).toContain('(tollbase serve --help lists its options)')
    expect((await run('pricing', 'set')).said).toContain('(tollbase pricing set --help lists its')
  })

  test.each([
    ['audit', '--jsno'],
    ['rebuild', 'now'],
    ['verify'],
    ['verify', 'receipt.json', '--repyl', 'reply.json'],
    ['pricing', 'show'],
  ])(
    'a mistake in an option ends with the code for what could not run, and not with that for a difference: %s %s',
    async (...args) => {
      expect((await run(...args)).code).toBe(2)
    },
  )

  test('the help, and the version, end with code 0', async () => {
    const shown = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    expect((await run('audit', '--help')).code).toBe(0)
    expect((await run('--version')).code).toBe(0)
    expect(shown).toHaveBeenCalled()
  })

  test('a mistake in a command is answered with the command that was meant', async () => {
    const { code, said } = await run('sreve')
    expect(code).toBe(2)
    expect(said).toContain('Did you mean serve?')
  })

  test.each([
    [['--port', 'abc'], '--port must be 0 to 65535, not abc'],
    [['--port', '65536'], '--port must be 0 to 65535, not 65536'],
    [['--log-level', 'loud'], '--log-level must be one of fatal, error'],
    [
      ['--operator-key', 'short'],
      'must have at least 16 characters, of letters, digits and signs of ASCII',
    ],
    [
      ['--config', join(folder, 'missing.json')],
      'missing.json cannot be read: there is no such file',
    ],
  ])('a mistake in a value is named: serve %j', async (flags, expected) => {
    const { code, said } = await run('serve', ...flags)
    expect(code).toBe(2)
    expect(said).toContain(expected)
    expect(said).not.toContain('    at ')
  })

  test('a mistake in the number of rows of the demo says what the number may be', async () => {
    const { code, said } = await run('demo', '--rows', '5')
    expect(code).toBe(2)
    expect(said).toContain('whole number from 1000')
  })
})

describe('mistakes in the configuration file', () => {
  test.each([
    ['{"prot": 1}', 'there is no field prot; did you mean "port"?'],
    ['{"colour": 1}', 'there is no field colour; known are $schema, host, port'],
    ['{"port": "x"}', 'port must be a whole number'],
    ['{"log_level": "loud"}', 'log_level must be one of fatal, error, warn'],
    [
      '{"networks": [{"network": "base", "pay_two": "0x1"}]}',
      'no field networks[0].pay_two; did you mean "pay_to"?',
    ],
    [
      '{"networks": [{"network": "base", "pay_to": "0x1"}]}',
      'networks[0].pay_to must be an EVM address: 0x and 40 hex digits',
    ],
    ['[]', 'the file must be an object'],
    ['{\n  "port": 1,,\n}', 'is not valid JSON (line 2, column 13)'],
  ])(
    'the configuration %s is refused at start, and its mistake is named',
    async (content, expected) => {
      const { code, said } = await run('serve', '--config', configFile(content))
      expect(code).toBe(2)
      expect(said).toContain(expected)
      expect(said).toContain('config.json')
    },
  )
})

const token = { address: `0x${'c1'.repeat(20)}`, name: 'USD Coin', version: '2', decimals: 18 }

test.each([
  [
    { network: 'eip155:999999' },
    'networks[0].network: eip155:999999 is no chain that x402 has a name for; use one of ethereum, ethereum-sepolia, ',
  ],
  [{ network: 'bsae' }, 'networks[0].network: bsae is no chain that x402 has a name for'],
  [
    { network: 'eip155:137' },
    'networks[0].asset is needed: the USDC of polygon is not known here; name it as {"address", "name", "version", "symbol", "decimals": 6}',
  ],
  [{ network: 'base', asset: token }, 'networks[0].asset.decimals must be 6, not 18'],
])(
  'a payment network that cannot be used is refused in one line, before a database is started: %j',
  async (network, expected) => {
    const file = configFile(
      JSON.stringify({ networks: [{ pay_to: `0x${'a1'.repeat(20)}`, ...network }] }),
    )
    const dataDir = join(folder, 'unused')
    const { code, said } = await run('serve', '--config', file, '--data-dir', dataDir)
    expect(code).toBe(2)
    expect(said).toContain(expected)
    expect(said.trim().split('\n')).toHaveLength(1)
    expect(existsSync(dataDir)).toBe(false)
  },
)

test.each(['audit', 'rebuild'])(
  'the command %s does not make a service where there is none',
  async (name) => {
    const { code, said } = await run(name, '--data-dir', join(folder, 'nothing'))
    expect(code).toBe(2)
    expect(said).toContain("there is no service's data in this folder")
  },
)

test('a service that cannot be asked is told in words: by its address, or by what is there', async () => {
  const ask = (url: string) => run('pricing', 'show', '--app', 'shop', '--url', url)
  expect(await ask('localhost:9092')).toMatchObject({
    code: 2,
    said: expect.stringContaining('--url must be a URL of http or https, not localhost:9092'),
  })
  const page = createServer((_, response) => response.end('<html>'))
  await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}`
  expect(await ask(url)).toMatchObject({
    code: 2,
    said: expect.stringContaining(
      `--url ${url}: what answers there is no service: it sends no JSON`,
    ),
  })
  await new Promise((resolve) => page.close(resolve))
  expect(await ask(url)).toMatchObject({
    code: 2,
    said: expect.stringContaining(`--url ${url}: nothing listens there; start the service`),
  })
})

test('a folder without the key of the operator is told by the option that named it', async () => {
  const missing = join(folder, 'elsewhere')
  expect((await run('held', 'list', '--data-dir', missing)).said).toContain(
    `--data-dir ${join(missing, 'operator-key')} cannot be read: there is no such file`,
  )
  expect((await run('held', 'list', '--operator-key-file', missing)).said).toContain(
    `--operator-key-file ${missing} cannot be read`,
  )
})

test.runIf(process.platform === 'linux')(
  'a folder that its file system does not make ends each command that is to write there, in words',
  async () => {
    const key = formatVerifierKey('shop.example/system', randomBytes(32))
    const witness = ['witness', '--url', 'http://127.0.0.1:1', '--log', key, '--once']
    const at = '/proc/tollbase'
    expect((await run(...witness, '--folder', at)).said).toContain(
      `--folder ${at} cannot be used: its file system makes no folder there`,
    )
    const recover = ['recover', '--rpc', 'http://127.0.0.1:1', '--key', key]
    expect((await run(...recover, '--to', at)).said).toContain(`--to ${at} cannot be used`)
    expect((await run(...recover, '--to', join(folder, 'recovered'))).said).toContain(
      'tollbase: --rpc http://127.0.0.1:1: ',
    )
  },
)

test('a witness that cannot serve what it signed, because another program listens there, says so in one line', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const at = `127.0.0.1:${(other.address() as AddressInfo).port}`
  vi.spyOn(console, 'log').mockReturnValue()
  const key = formatVerifierKey('shop.example/system', randomBytes(32))
  const args = ['--url', 'http://127.0.0.1:1', '--log', key, '--folder', join(folder, 'witness')]
  expect(await run('witness', ...args, '--listen', at, '--once')).toEqual({
    code: 2,
    said: `tollbase: --listen ${at}: another program listens there already; choose another\n`,
  })
  other.close()
})

test('nothing that a node or a service says reaches the terminal as a command of recover and of witness', async () => {
  const hide = '\u001b[8m'
  const note = `shop${hide}\n1\n${randomBytes(32).toString('base64')}\n\n— shop ${randomBytes(68).toString('base64')}\n`
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    response.setHeader('content-type', 'application/json')
    const refuse = ({ id }: { id: unknown }) => ({
      ...{ jsonrpc: '2.0', id, error: { code: -32000, message: `no ${hide} node` } },
    })
    if (text === '') return response.end(JSON.stringify({ checkpoint: note }))
    const asked = JSON.parse(text)
    response.end(JSON.stringify(Array.isArray(asked) ? asked.map(refuse) : refuse(asked)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  vi.spyOn(console, 'log').mockReturnValue()
  const key = formatVerifierKey('shop.example/system', randomBytes(32))
  const recover = ['recover', '--rpc', url, '--key', key, '--to', join(folder, 'refused')]
  const witness = ['witness', '--url', url, '--log', key, '--folder', join(folder, 'followed')]
  const [recovered, followed] = [await run(...recover), await run(...witness, '--once')]
  await new Promise((resolve) => server.close(resolve))
  expect(recovered.said).toMatch(/no .+ node/)
  expect(followed.said).toMatch(/the checkpoint is of shop/)
  for (const { code, said } of [recovered, followed]) {
    expect(code).toBe(2)
    // The line of progress has commands of its own.
    expect(said).not.toContain(hide)
  }
})
