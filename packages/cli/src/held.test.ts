import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
        said: '0 payments are held, 0 atomic units\n',
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
  }))
