import { SetupError } from '@tollbase/server/base/setup-error'
import type { Command } from 'commander'
import { type Answer, askService, endWithAnswer, readKeyFile } from './ask-service.ts'
import { askYes } from './pricing/ask-yes.ts'
import { printChange, printRules, printSimulation } from './pricing/print-prices.ts'
import { readRules } from './pricing/read-rules.ts'
import { showControls } from './print-line.ts'

type ServiceFlags = {
  readonly app: string
  readonly url: string
  readonly appKeyFile?: string
  readonly json?: boolean
}
type SetFlags = ServiceFlags & { readonly confirmFree?: readonly string[] }
type SimulateFlags = ServiceFlags & { readonly from?: string; readonly to?: string }

/** `tollbase pricing show|set|simulate`: exit 1 where the service refuses, 2 where it cannot be asked. */
export function addPricingCommand(program: Command, finish: (code: number) => void): void {
  const pricing = program.command('pricing').description("show, set and simulate a seller's prices")
  const add = (name: string, description: string) =>
    pricing
      .command(name)
      .description(description)
      .requiredOption('--app <id>', 'the application')
      .option('--url <url>', 'the service', 'http://127.0.0.1:9092')
      .option('--app-key-file <file>', 'a file with a key of the application: Admin, but for show')
      .option('--json', 'print the answer as JSON')
  add('show', 'show the price rules').action(async (flags: ServiceFlags) => {
    finish(endWithAnswer(flags, await askPricing(flags, 'getPricing'), printRules))
  })
  add('set', 'replace all price rules by those of a file')
    .argument('<file>', 'JSON: a list of rules, or an object with rules; - for standard input')
    .option(
      '--confirm-free <target...>',
      'what strangers may read for nothing from now on, such as collection:prices',
    )
    .action(async (file: string, flags: SetFlags) => finish(await setPrices(file, flags)))
  add('simulate', 'say what past sales would have earned by the rules of a file')
    .argument('<file>', 'as for set; nothing is changed')
    .option('--from <time>', 'a day or a time in UTC; 30 days before the end when not given')
    .option('--to <time>', 'the end of the period; now when not given')
    .action(async (file: string, { from, to, ...flags }: SimulateFlags) => {
      const body = { rules: await readRules(file), ...(from && { from }), ...(to && { to }) }
      finish(
        endWithAnswer(flags, await askPricing(flags, 'simulatePricing', { body }), printSimulation),
      )
    })
}

/** Sets the rules; what would become free is confirmed by an option, or asked for at a terminal. */
async function setPrices(file: string, flags: SetFlags): Promise<number> {
  const rules = await readRules(file)
  const confirmed = (flags.confirmFree ?? []).map(parseTarget)
  const put = (confirm_free: readonly Target[]) =>
    askPricing(flags, 'setPricing', { body: { rules, confirm_free } })
  const first = await put(confirmed)
  const freed = first.status === 409 ? first.body.details?.confirm_free : undefined
  if (!Array.isArray(freed)) return endWithAnswer(flags, first, printChange)
  const names = freed.map((target: Target) => Object.entries(target).flat().join(' '))
  const isMeant = await askYes(
    showControls(`Strangers could then read for nothing: ${names.join(', ')}. Is that meant?`),
  )
  return endWithAnswer(flags, isMeant ? await put([...confirmed, ...freed]) : first, printChange)
}

type Target = Readonly<Record<string, string>>

function parseTarget(text: string): Target {
  const [, kind, name] = /^(collection|view|query|api_collection):(.+)$/.exec(text) ?? []
  if (kind === undefined || name === undefined)
    throw new SetupError(`--confirm-free must be a target such as collection:prices, not ${text}`)
  return { [kind]: name }
}

type Asked = 'getPricing' | 'setPricing' | 'simulatePricing'

async function askPricing(
  { app, url, appKeyFile: file }: ServiceFlags,
  operation: Asked,
  question: { readonly body?: object } = {},
): Promise<Answer> {
  const key = file === undefined ? undefined : await readKeyFile('--app-key-file', file)
  const headers = key === undefined ? {} : { 'x-app-key': key }
  return askService(operation, { url, app, headers, ...question })
}
