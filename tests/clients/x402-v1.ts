import type { Json } from '../support/service.ts'

/**
 * Lists where a 402 breaks the rules that the npm package x402-fetch 1.2.0 applies before it pays: the zod schemas
 * of x402 1.2.0, restated. One entry of `accepts` that breaks them makes the whole answer unreadable.
 */
export function listProblems(body: Json): readonly string[] {
  if (typeof body !== 'object' || body === null) return ['the body is not an object']
  if (!Array.isArray(body.accepts)) return ['accepts is not a list']
  return [
    ...(body.x402Version === 1 ? [] : ['x402Version is not 1']),
    ...(body.accepts.length > 0 ? [] : ['accepts is empty']),
    ...body.accepts.flatMap((entry: Json, at: number) =>
      Object.entries(rules)
        .filter(([field, isRight]) => !isRight(entry?.[field]))
        .map(([field]) => `accepts[${at}].${field} is ${JSON.stringify(entry?.[field])}`),
    ),
  ]
}

const networks = new Set(
  `abstract abstract-testnet base-sepolia base avalanche-fuji avalanche iotex solana-devnet solana sei sei-testnet
   polygon polygon-amoy peaq story educhain skale-base-sepolia`.split(/\s+/),
)

const address = /^(0x[a-fA-F0-9]{40}|[A-Za-z0-9][A-Za-z0-9-]{0,34}[A-Za-z0-9])$/
const isText = (value: Json) => typeof value === 'string'
const isMapOrAbsent = (value: Json) =>
  value === undefined || (typeof value === 'object' && value !== null && !Array.isArray(value))

const rules: Readonly<Record<string, (value: Json) => boolean>> = {
  scheme: (value) => value === 'exact',
  network: (value) => networks.has(value),
  maxAmountRequired: (value) => isText(value) && value !== '' && Number.isInteger(Number(value)),
  resource: (value) => isText(value) && URL.canParse(value) && /^https?:/.test(value),
  description: isText,
  mimeType: isText,
  // Null is refused, although the specification's own example has it.
  outputSchema: isMapOrAbsent,
  payTo: (value) => isText(value) && address.test(value),
  maxTimeoutSeconds: (value) => Number.isInteger(value),
  asset: (value) => isText(value) && address.test(value),
  extra: isMapOrAbsent,
}
