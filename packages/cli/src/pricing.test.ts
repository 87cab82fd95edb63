import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createData, type Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { runCommand } from './commands.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-pricing-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('tollbase pricing', () =>
  withService((service) => {
    let seller: Data
    beforeAll(async () => {
      seller = await createData(service())
      await seller.publish('sales', [{ id: 'a' }])
      writeFileSync(join(folder, 'key'), `${seller.key}\n`)
    })
    const write = (content: unknown) => {
      const file = join(folder, 'rules.json')
      writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
      return file
    }
    /** Runs the command, and returns its exit code and the text that it printed. */
    const run = async (name: string, ...args: string[]) => {
      let said = ''
      const note = (text: unknown) => {
        said += `${String(text)}\n`
        return true
      }
      vi.spyOn(console, 'log').mockImplementation(note)
      vi.spyOn(console, 'error').mockImplementation(note)
      vi.spyOn(process.stderr, 'write').mockImplementation(note)
      const at = ['--app', seller.appId, '--url', service().url]
      const code = await runCommand([
        'pricing',
        name,
        ...at,
        '--app-key-file',
        join(folder, 'key'),
        ...args,
      ])
      vi.restoreAllMocks()
      return { code, said }
    }
    const rule = { target: { collection: 'sales' }, operation: 'read', model: 'per_row' }

    test('prices are set from a file, shown with dollars beside atomic units, and simulated', async () => {
      const tiers = [{ above: 10, amount: '1500' }]
      const set = await run('set', write([{ ...rule, amount: '2500', tiers }]))
      const line = 'read collection sales: per_row 2500 ($0.0025) above 10: 1500 ($0.0015)'
      expect(set).toMatchObject({ code: 0, said: expect.stringContaining(`+ ${line}`) })
      const shown = await run('show')
      expect(shown.said).toContain(line)
      expect(shown.said).toContain('share of the seller: 80 %')
      const simulated = await run(
        'simulate',
        write({ rules: [{ ...rule, amount: '1' }] }),
        '--from',
        '2026-01-01',
      )
      expect(simulated.code, simulated.said).toBe(0)
      expect(simulated.said).toContain(
        'in all: earned 0 ($0.00), simulated 0 ($0.00), difference 0 ($0.00)',
      )
      const json = await run('show', '--json')
      expect(JSON.parse(json.said).rules[0].amount).toBe('2500')
    })

    test('prices that would give something away are set only where that is confirmed by name', async () => {
      await run('set', write([{ ...rule, amount: '2500' }]))
      const refused = await run('set', write([]))
      expect(refused.code).toBe(1)
      expect(refused.said).toContain('collection sales')
      const other = await run('set', write([]), '--confirm-free', 'sales')
      expect([other.code, other.said.includes('collection:prices')]).toEqual([2, true])
      const confirmed = await run('set', write([]), '--confirm-free', 'collection:sales')
      expect(confirmed.code, confirmed.said).toBe(0)
      expect(confirmed.said).toContain('- read collection sales: per_row 2500 ($0.0025)')
    })

    test('what a service says is no command to the terminal, and the key goes nowhere else', async () => {
      const paths: string[] = []
      const target = { collection: 'a\u001b[2J\u009b1m\u202e' }
      const hostile = createServer((request, response) => {
        paths.push(request.url ?? '')
        if (request.url?.startsWith('/moved') === true)
          return response.writeHead(307, { location: '/else' }).end()
        const split = { app_owner_percentage: 80, platform_percentage: 20 }
        const rules = [{ ...rule, target, amount: '1' }]
        return response.end(JSON.stringify({ rules, split, version: 'v' }))
      })
      await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve))
      try {
        const url = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`
        const shown = await run('show', '--url', url)
        expect(shown).toMatchObject({
          code: 0,
          said: expect.stringContaining('collection a\ufffd'),
        })
        expect(shown.said.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u)
        expect((await run('show', '--url', `${url}/moved`)).code).toBe(2)
        expect(paths).not.toContain('/else')
      } finally {
        hostile.close()
      }
    })

    test.each([
      ['{', 'is not valid JSON'],
      ['{"price": 1}', 'must be a list of rules'],
    ])('a file that holds no rules is refused: %s', async (content, problem) => {
      expect(await run('set', write(content))).toMatchObject({
        code: 2,
        said: expect.stringContaining(problem),
      })
    })
  }))
