import { readFile } from 'node:fs/promises'
import { FormatError } from '@tollbase/verify/bytes'
import { verifyDocument } from '@tollbase/verify/verify'
import type { Command } from 'commander'

type Options = { readonly key?: string; readonly reply?: string; readonly json?: boolean }

/** `tollbase verify <file>`: a receipt or a proof, checked without any network. */
export function verifyCommand(program: Command, finish: (code: number) => void): void {
  program
    .command('verify')
    .description('check a receipt or a proof offline')
    .argument('<file>', 'JSON file: a receipt, a record proof or a checkpoint')
    .option(
      '--key <vkey>',
      "the service's public key, from a place you trust (GET /.well-known/tollbase)",
    )
    .option(
      '--reply <file>',
      'the answer that was bought, byte for byte, to compare with the receipt',
    )
    .option('--json', 'print the result as JSON')
    .action(async (file: string, options: Options) => finish(await verify(file, options)))
}

async function verify(file: string, options: Options): Promise<number> {
  try {
    const text = await readFile(file, 'utf8')
    const reply = options.reply === undefined ? undefined : await readFile(options.reply)
    const result = verifyDocument(text, { trustedKey: options.key, reply })
    if (options.json === true) console.log(JSON.stringify(result, null, 2))
    else {
      for (const check of result.checks)
        console.log(`${check.ok ? '✓' : '✗'} ${check.name}: ${check.detail}`)
      console.log(result.ok ? `${file}: valid` : `${file}: NOT valid`)
    }
    return result.ok ? 0 : 1
  } catch (error) {
    const known = error instanceof FormatError || (error instanceof Error && 'code' in error)
    if (!known) throw error
    console.error(`tollbase: ${file}: ${error.message}`)
    return 2
  }
}
