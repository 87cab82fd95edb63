import { type Static, Type } from 'typebox'
import { Check, Errors } from 'typebox/value'

const Address = Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' })

/** tollbase.config.json; its JSON Schema is published as docs/tollbase.config.schema.json. */
export const ConfigFile = Type.Object(
  {
    $schema: Type.Optional(Type.String()),
    host: Type.Optional(Type.String()),
    port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65535 })),
    data_dir: Type.Optional(Type.String({ minLength: 1 })),
    database_url: Type.Optional(Type.String({ minLength: 1 })),
    public_url: Type.Optional(Type.String({ pattern: '^https?://[^/]+(/.*)?$' })),
    service_name: Type.Optional(
      Type.String({
        pattern: '^[a-z0-9][a-z0-9.-]{0,99}$',
        description: 'first part of the origin of every checkpoint; never change it',
      }),
    ),
    platform_percentage: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 100,
        multipleOf: 0.01,
        description: 'share of each sale that the operator keeps; 20 when not given',
      }),
    ),
    networks: Type.Optional(
      Type.Array(
        Type.Object(
          {
            network: Type.String({
              description: 'x402 name (base-sepolia) or CAIP-2 id (eip155:84532)',
            }),
            asset: Type.Optional(
              Type.Object(
                {
                  address: Address,
                  name: Type.String({ description: "of the token's EIP-712 domain" }),
                  version: Type.String(),
                  symbol: Type.Optional(Type.String()),
                  decimals: Type.Integer({ minimum: 0, maximum: 36 }),
                },
                {
                  additionalProperties: false,
                  description: 'an EIP-3009 token; the known USDC of the network when not given',
                },
              ),
            ),
            pay_to: Address,
            rpc_url: Type.Optional(Type.String({ pattern: '^https?://' })),
            facilitator_url: Type.Optional(
              Type.String({
                pattern: '^https?://',
                description: 'settle through this x402 facilitator instead of our own key',
              }),
            ),
            signer_key_file: Type.Optional(
              Type.String({
                description:
                  'file with the 0x hex key that pays the gas of settlements; needs rpc_url',
              }),
            ),
            confirmations: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
          },
          { additionalProperties: false },
        ),
        { maxItems: 20 },
      ),
    ),
  },
  { additionalProperties: false },
)

export type ConfigFile = Static<typeof ConfigFile>

/** A mistake in the configuration: refused at start, naming the field. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigError'
  }
}

export function parseConfigFile(text: string, path: string): ConfigFile {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ConfigError(
      `${path} is not valid JSON: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (Check(ConfigFile, value)) return value
  const [first] = Errors(ConfigFile, value)
  throw new ConfigError(
    `${path}: ${first?.instancePath || 'the file'} ${first?.message ?? 'is not valid'}${unknownField(first)}`,
  )
}

function unknownField(error: { params: object } | undefined): string {
  const names =
    error !== undefined && 'additionalProperties' in error.params
      ? error.params.additionalProperties
      : undefined
  return names === undefined ? '' : `: ${String(names)}`
}
