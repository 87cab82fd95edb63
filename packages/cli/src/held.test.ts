import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeDepositEntry } from '@tollbase/server/services/payments/deposits/claim-deposit'
import { withService } from '@tollbase/testing/per-engine'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { runCommand } from './commands.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-held-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('tollbase held', () =>
  withService((service) => {
    /** Runs the command, and returns its exit code and the text that it printed. */
    const run = async (...args: string[]) => {
      let said = ''
      const note = (text: unknown) => {
        said += `${String(text)}\n`
        return true
      }
      vi.spyOn(console, 'log').mockImplementation(note)
      vi.spyOn(console, 'error').mockImplementation(note)
      const key = String(service().operator.authorization).replace('Bearer ', '')
      writeFileSync(join(folder, 'operator-key'), `${key}\n`)
      const code = await runCommand([
        'held',
        ...args,
        ...['--url', service().url, '--data-dir', folder],
      ])
      vi.restoreAllMocks()
      return { code, said }
    }

    test('what is held is listed and released with the key in the data folder; a release says of what', async () => {
      expect(await run('list')).toEqual({
        code: 0,
        said: '0 payments are held: 0 atomic units ($0.00)\n',
      })
      expect(await run('release', '--all')).toMatchObject({
        code: 0,
        said: expect.stringContaining('0 payments released'),
      })
      expect(await run('release', '--payment', 'pay_x')).toMatchObject({
        code: 1,
        said: expect.stringContaining('PAYMENT_NOT_FOUND'),
      })
      for (const choice of [[], ['--all', '--payer', `0x${'1'.repeat(40)}`]])
        expect(await run('release', ...choice)).toMatchObject({
          code: 2,
          said: expect.stringContaining('one of --payment, --payer and --all'),
        })
    })

    test('held money is listed with its dollars, and released for one payer, one payment, or all', async () => {
      const { chain } = service().running.service.tenants.system
      const payers = ['1', '2', '3'].map((digit) => `0x${digit.repeat(40)}`)
      const network = 'eip155:84532'
      const asset = `0x${'a'.repeat(40)}`
      const ids = payers.map((_, at) => `pay_${String(at + 1).repeat(32)}`)
      const entries = payers.map((payer, at) =>
        makeDepositEntry({
          ...{ paymentId: ids[at] ?? '', payer, amount: 1_000n * BigInt(at + 1), network, asset },
          identity: `${network}/${asset}/${payer}/0x${'f'.repeat(64)}`,
          ...{ isWithheld: true, transaction: `0x${'e'.repeat(64)}` },
        }),
      )
      await chain.append(entries)
      const { code, said } = await run('list')
      expect(code, said).toBe(0)
      const [first = '', , , sum] = said.trim().split('\n')
      expect(first.split('  ').slice(1)).toEqual([
        ...[ids[0], payers[0], '1000 ($0.001)', network, `0x${'e'.repeat(64)}`],
      ])
      expect(sum).toBe('3 payments are held: 6000 atomic units ($0.006)')
      const json = await run('list', '--json')
      expect(JSON.parse(json.said).payments[1]).toMatchObject({
        ...{ payment_id: ids[1], payer: payers[1], amount: '2000', usd: { amount: '0.002' } },
      })
      const read = async (payer = '') =>
        (await service().request('GET', `/api/wallets/${payer}`)).body.available
      expect(await read(payers[1])).toBe('0')
      const released = await run('release', '--payer', payers[1] ?? '')
      expect(released.said).toBe('1 payment released: 2000 atomic units ($0.002)\n')
      expect(await read(payers[1])).toBe('2000')
      expect((await run('release', '--payment', ids[0] ?? '')).said).toMatch(/^1 payment released/)
      expect((await run('list')).said).toMatch(/1 payment is held: 3000 atomic units \(\$0\.003\)/)
      expect((await run('release', '--all')).said).toMatch(/^1 payment released: 3000 /)
      expect(await run('list')).toMatchObject({
        code: 0,
        said: expect.stringMatching(/^0 payments/),
      })
      expect(await read(payers[2])).toBe('3000')
    })
  }))
