import { limits } from '@tollbase/contract/limits'
import { type Static, Type } from 'typebox'
import { Check, Errors } from 'typebox/value'
import { describeSchemaError } from '../base/describe-schema-error.ts'
import { isRecord } from '../base/is-record.ts'
import { findBreak } from '../base/json-break.ts'
import { findSuggestion, formatSuggestion } from '../base/known-members.ts'
import { SetupError } from '../base/setup-error.ts'
import { dataSetKinds } from '../query/data-set.ts'
import { Anchors, Publishers, WitnessList } from './anchors-config.ts'
import { BlobMegabytes, BlobStoreConfig } from './blob-store-config.ts'
import { EncryptionKeyCommand } from './encryption-config.ts'
import { Facilitator } from './facilitator-config.ts'
import { Networks } from './networks-config.ts'
import { ApplicationQuota } from './quota-config.ts'
import { RateLimits } from './rate-limits-config.ts'

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]
export const logFormats = ['pretty', 'json'] as const
export type LogFormat = (typeof logFormats)[number]
export const registrations = ['open', 'operator'] as const

/** tollbase.config.json. */
export const ConfigFile = Type.Object(
  {
    $schema: Type.Optional(Type.String()),
    host: Type.Optional(
      Type.String({ description: 'address to listen on; 127.0.0.1 when not given' }),
    ),
    port: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 65535,
        description: 'port to listen on, 0 for any free one; 9092 when not given',
      }),
    ),
    data_dir: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'folder of keys and of our own database; ./tollbase-data when not given',
      }),
    ),
    database_url: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'a PostgreSQL server, instead of our own as a child process',
      }),
    ),
    public_url: Type.Optional(
      Type.String({
        pattern: '^https?://[^/]+(/.*)?$',
        description: 'where buyers reach the service; stands in every 402',
      }),
    ),
    log_level: Type.Optional(
      Type.Enum(logLevels, {
        description: 'least level that is written to stderr; info when not given',
      }),
    ),
    log_format: Type.Optional(
      Type.Enum(logFormats, {
        description: 'pretty or json; when not given pretty in a terminal and json elsewhere',
      }),
    ),
    access_log: Type.Optional(
      Type.Boolean({
        description:
          'whether each request is logged, in one line at level info; true when not given',
      }),
    ),
    rate_limits: Type.Optional(RateLimits),
    registration: Type.Optional(
      Type.Enum(registrations, {
        description:
          'who registers applications: open (also wallets, which become their owners) or operator; operator when not given, open with --devnet',
      }),
    ),
    quota: Type.Optional(ApplicationQuota),
    trust_proxy: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        maxItems: 100,
        description:
          'addresses, networks (10.0.0.0/8) or loopback, linklocal, uniquelocal of the proxies in front, whose X-Forwarded-For is believed; none when not given',
      }),
    ),
    drain_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 600,
        description:
          'how long requests under way may take to finish when the service is told to end; 8 when not given',
      }),
    ),
    blob_mb_max: Type.Optional(BlobMegabytes),
    blob_store: Type.Optional(BlobStoreConfig),
    kept_answers_mb: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 65_536,
        description: 'memory for free answers of predefined queries, 0 for none; 32 when not given',
      }),
    ),
    service_name: Type.Optional(
      Type.String({
        pattern: '^[a-z0-9][a-z0-9.-]{0,99}$',
        description: 'first part of the origin of every checkpoint; never change it',
      }),
    ),
    channels: Type.Optional(
      Type.Boolean({
        description:
          'false: payment channels are offered on no network, the local chain of dev included; true when not given',
      }),
    ),
    upto: Type.Optional(
      Type.Boolean({
        description:
          'false: the x402 scheme upto is offered on no network, the local chain of dev included; true when not given',
      }),
    ),
    facilitator: Type.Optional(Facilitator),
    platform_percentage: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 100,
        multipleOf: 0.01,
        description: 'share of each sale that the operator keeps; 20 when not given',
      }),
    ),
    encryption_update_price: Type.Optional(
      Type.String({
        pattern: '^(0|[1-9][0-9]{0,14})$',
        description:
          'price of a change of encryption settings in atomic units, 0 for none; 1000 (a tenth of a cent) when not given',
      }),
    ),
    retention_price_per_gb_month: Type.Optional(
      Type.String({
        pattern: '^(0|[1-9][0-9]{0,14})$',
        description:
          'what GET .../retention/cost states for 2^30 bytes of records older than 30 days, for 30 days, in atomic units; 0 when not given. Charged where storage_fees is given',
      }),
    ),
    storage_fees: Type.Optional(
      Type.Object(
        {
          free_bytes: Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: limits.storageFeeFreeBytesMax,
              description: 'bytes of each application that cost nothing; 2^30 when not given',
            }),
          ),
        },
        {
          additionalProperties: false,
          description:
            'charges applications each day for what they keep, at retention_price_per_gb_month; nothing is charged when not given',
        },
      ),
    ),
    data_sets: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.String({
              pattern: '^[A-Za-z0-9_-]{1,63}$',
              description: 'what queries name it by (inDataset)',
            }),
            kind: Type.Enum(dataSetKinds, {
              description:
                'values, networks, or networks with the country of each, of which there may be one',
            }),
            file: Type.String({
              minLength: 1,
              description:
                'one value, "network" or "first,last", or either with ",country", a line; read at start',
            }),
          },
          { additionalProperties: false },
        ),
        {
          maxItems: 100,
          description: "data sets that every application's queries can look into",
        },
      ),
    ),
    allowed_upstreams: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 300 }), {
        maxItems: 100,
        description:
          'hosts (host or host:port) that the API collections of every application may ask though they are not on the public internet, or on another port; none when not given',
      }),
    ),
    encryption_key_command: Type.Optional(EncryptionKeyCommand),
    anchors: Type.Optional(Anchors),
    publishers: Type.Optional(Publishers),
    witnesses: Type.Optional(WitnessList),
    networks: Type.Optional(Networks),
  },
  { additionalProperties: false },
)

export type ConfigFile = Static<typeof ConfigFile>

/** The JSON Schema of the file, for editors; published as docs/tollbase.config.schema.json. */
export function buildConfigSchema() {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'tollbase.config.json',
    description:
      'Configuration of a Tollbase service. A command line option wins over its environment variable, which wins over this file.',
    ...ConfigFile,
  }
}

/** A mistake in the configuration: refused at start, naming the field. */
export class ConfigError extends SetupError {
  override readonly name = 'ConfigError'
}

/** Parses the text of a configuration file; `path` names it in the message of a ConfigError. */
export function parseConfigFile(text: string, path: string): ConfigFile {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    const place = findBreak(text)
    const where = place === undefined ? '' : ` (line ${place.line}, column ${place.column})`
    throw new ConfigError(`${path} is not valid JSON${where}`)
  }
  if (Check(ConfigFile, value)) return value
  throw new ConfigError(`${path}: ${formatProblem(Errors(ConfigFile, value))}`)
}

type Problem = Parameters<typeof describeSchemaError>[0] & { readonly instancePath: string }

/** Describes the first mistake. An unknown field goes before a missing one, because it is often its misspelling. */
function formatProblem(problems: readonly Problem[]): string {
  for (const { instancePath, params } of problems) {
    const [unknown] =
      'additionalProperties' in params && Array.isArray(params.additionalProperties)
        ? params.additionalProperties
        : []
    if (typeof unknown !== 'string') continue
    const known = listFieldsAt(instancePath.split('/').slice(1))
    const hint =
      formatSuggestion(findSuggestion(unknown, known)) || `; known are ${known.join(', ')}`
    return `there is no field ${formatPointer(`${instancePath}/${unknown}`)}${hint}`
  }
  // Where something may be one of two kinds, the deepest mistake is in the kind that was meant.
  const first = problems.toSorted((a, b) => getDepth(b) - getDepth(a))[0]
  const name = formatPointer(first?.instancePath ?? '')
  if (first !== undefined && 'allowedValue' in first.params)
    return `${name} must be ${JSON.stringify(first.params.allowedValue)} or an object`
  if (first !== undefined && 'allowedValues' in first.params)
    return `${name} must be one of ${String(first.params.allowedValues).replaceAll(',', ', ')}`
  return `${name} ${first === undefined ? 'is not valid' : describeSchemaError(first)}`
}

function getDepth({ instancePath }: Problem): number {
  return instancePath.split('/').length
}

/** Formats a JSON pointer as people write it: networks[0].pay_to. */
function formatPointer(pointer: string): string {
  const name = pointer.replace(/\/(\d+)(?=\/|$)/g, '[$1]').replaceAll('/', '.')
  return name === '' ? 'the file' : name.replace(/^\./, '')
}

/** Lists the names of the fields that the object at this place may have. */
function listFieldsAt(path: readonly string[]): string[] {
  let schema: object = ConfigFile
  for (const part of path) {
    const properties: Readonly<Record<string, unknown>> =
      'properties' in schema && isRecord(schema.properties) ? schema.properties : {}
    const next = 'items' in schema ? schema.items : properties[part]
    if (!isRecord(next)) return []
    const kinds = Array.isArray(next.anyOf) ? next.anyOf.filter(isRecord) : [next]
    schema = kinds.find((kind) => 'properties' in kind || 'items' in kind) ?? next
  }
  return 'properties' in schema && isRecord(schema.properties) ? Object.keys(schema.properties) : []
}
