import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { expect, test } from 'vitest'
import { buyerPackages, sdkPackage } from '../../packages/server/src/http/pages/buyer-program.ts'
import { makeData } from '../support/data.ts'
import { openMarket } from '../support/market.ts'
import { createFundedPayer } from '../support/payer.ts'
import { startTestService } from '../support/service.ts'

const folder = new URL('../..', import.meta.url).pathname

/** Runs a program as somebody does who copied it from a page. */
async function runProgram(program: string, key: string, args: readonly string[] = []) {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', program, 'buy.mjs', ...args],
    { cwd: folder, env: { ...process.env, BUYER_KEY: key } },
  )
  return stdout
}

/** Lists the programs of a page, as its reader sees them. */
function listPrograms(page: string): readonly string[] {
  const blocks = [...page.matchAll(/<pre><code>([^<]*)<\/code><\/pre>/g)].map(
    ([, text = '']) => text,
  )
  const entities = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' }
  return blocks
    .map((text) => text.replace(/&[a-z#0-9]+;/g, (one) => Reflect.get(entities, one) ?? one))
    .filter((text) => text.startsWith('import'))
}

test('the programs on /docs and on the page of a query buy an answer as they are printed', async () => {
  const service = await startTestService({ devnet: true })
  try {
    const market = await openMarket(service, { price: { per_row: '1000' } })
    const queries = makeData(service, market)
    const made = await queries.call('POST', '/queries', {
      name: 'all',
      sql: `SELECT id FROM "${market.appId}"::${market.collection}`,
      price: { per_access: '2000' },
    })
    expect(made.status, made.text).toBe(201)
    const payer = await createFundedPayer(service)
    const key = generatePrivateKey()
    const body = { address: privateKeyToAddress(key) }
    expect((await service.request('POST', '/devnet/faucet', { body })).status).toBe(200)
    const page = await service.request('GET', '/docs')
    expect(page.text).toContain('href="#buying"')
    const ours = (text: string) =>
      text
        .replace('shop::prices', market.root)
        .replace(',"find":{"item":"tea"}', '')
        .replace("appId: 'shop'", `appId: '${market.appId}'`)
        .replace("collection('prices')", `collection('${market.collection}')`)
    const [stock = '', sdk = ''] = listPrograms(page.text).map(ours)
    expect(await runProgram(stock, key)).toMatch(/^200 .*"records":\[\{.* rcpt_/)
    const offer = (await runProgram(sdk, key)).trim().split('\n').at(-1)?.split(' ') ?? []
    const [quoteId = '', to = '', amount = '0'] = offer
    const hash = await payer.transfer({ to: `0x${to.slice(2)}`, value: BigInt(amount) })
    expect(await runProgram(sdk, key, [quoteId, hash])).toContain('id:')

    const described = await service.request('GET', `/docs/queries/${market.appId}/all`)
    expect(described.text).toContain('($0.002) for each request')
    const [query = ''] = listPrograms(described.text)
    expect(await runProgram(query, key)).toMatch(/^200 .*"data":\[\{.* rcpt_/)
  } finally {
    await service.close()
  }
})

test('the pages name the versions of packages that the tests use', () => {
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(`${folder}/package.json`, 'utf8'),
  )
  const used = { ...dependencies, ...devDependencies }
  for (const named of [...buyerPackages.split(' '), sdkPackage]) {
    const at = named.lastIndexOf('@')
    expect(used[named.slice(0, at)]).toBe(named.slice(at + 1))
  }
})
