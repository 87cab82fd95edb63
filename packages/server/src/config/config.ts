import { existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { limits } from '@tollbase/contract/limits'
import { explainReadError } from '../base/files.ts'
import type { S3Bucket } from '../blobs/s3-client.ts'
import { s3ObjectBytesMax } from '../blobs/s3-shelf.ts'
import type { InFlightLimits, Rates } from '../http/rate-limits.ts'
import type { KeyCommand } from '../sealing/key-command.ts'
import { parseMasterKeys } from '../sealing/local-master-keys.ts'
import { computeSealedSize } from '../sealing/segments.ts'
import { type AllowedHost, parseAllowedHost } from '../upstream/allowed-host.ts'
import {
  ConfigError,
  type ConfigFile,
  type LogFormat,
  type LogLevel,
  logFormats,
  logLevels,
  parseConfigFile,
  type registrations,
} from './config-file.ts'
import { readDatabaseUrl } from './database-url.ts'
import { readKeyCommand } from './encryption-config.ts'
import { type FacilitatorConfig, readFacilitator } from './facilitator-config.ts'
import { readQuota } from './quota-config.ts'
import { readRateLimits } from './rate-limits-config.ts'
import { readNetworks } from './read-networks.ts'

/** Command line options; each wins over its environment variable, which wins over the file. */
export type Flags = {
  readonly host?: string
  readonly port?: string
  readonly dataDir?: string
  readonly databaseUrl?: string
  readonly operatorKey?: string
  readonly publicUrl?: string
  readonly config?: string
  readonly devnet?: boolean
  readonly afterRestore?: boolean
  readonly logLevel?: string
  readonly logFormat?: string
  readonly allowUpstream?: readonly string[]
}

export type Config = {
  readonly host: string
  readonly port: number
  readonly dataDir: string
  readonly databaseUrl: string | undefined
  readonly operatorKey: string | undefined
  readonly publicUrl: string | undefined
  readonly serviceName: string | undefined
  readonly platformBasisPoints: bigint
  /** False where no payment channels are offered. */
  readonly channels: boolean
  /** False where the scheme `upto` is not offered. */
  readonly upto: boolean
  /** Not there where payments to others are not settled. */
  readonly facilitator?: FacilitatorConfig | undefined
  readonly devnet: boolean
  /** The operator says that the database is older than what its networks show. */
  readonly afterRestore: boolean
  readonly logLevel: LogLevel
  /** Undefined: pretty where the log goes to a terminal, JSON elsewhere. */
  readonly logFormat: LogFormat | undefined
  /** One line for each request. */
  readonly accessLog: boolean
  /** A limit that is not given is off. */
  readonly rateLimits: Rates & InFlightLimits
  /** Callers that may register applications. */
  readonly registration: (typeof registrations)[number]
  /** The limits of each application's storage; null is no limit. */
  readonly quota: { readonly bytes: number | null; readonly records: number | null }
  readonly trustProxy: readonly string[]
  /** The time that requests under way have to finish when the service ends. */
  readonly drainMs: number
  /** Bytes of the largest blob. */
  readonly blobBytesMax: number
  /** The bucket that has the files of blobs; not there where the data folder has them. */
  readonly blobStore?: S3Bucket | undefined
  /** The memory for the result cache of predefined queries; 0 turns it off. */
  readonly resultCacheBytes: number
  /** The price of a change of encryption settings, in atomic units; 0 is free. */
  readonly encryptionUpdatePrice: bigint
  /** Atomic units for 2^30 bytes and 30 days. */
  readonly retentionPrice: bigint
  /** Undefined where nothing is charged for storage. */
  readonly storageFees: { readonly price: bigint; readonly freeBytes: bigint } | undefined
  /** Master keys of encryption, the present one first; undefined: a file in the data folder. */
  readonly masterKeys: string | undefined
  /** The program that has an external key manager wrap data keys. */
  readonly keyCommand?: KeyCommand | undefined
  readonly dataSets: NonNullable<ConfigFile['data_sets']>
  readonly networks: NonNullable<ConfigFile['networks']>
  /** Chains that the service's own chain is anchored on, beside the devnet; off: on none at all. */
  readonly anchors: NonNullable<ConfigFile['anchors']>
  /** Chains that blocks of applications are published on, beside the devnet; off: on none at all. */
  readonly publishers: NonNullable<ConfigFile['publishers']>
  readonly witnesses: NonNullable<ConfigFile['witnesses']>
  /** Hosts that API collections may ask, wherever they are. */
  readonly allowedUpstreams: readonly AllowedHost[]
}

type Environment = Readonly<Record<string, string | undefined>>

const configFileDefault = 'tollbase.config.json'

/** Reads the configuration of a run. Throws a ConfigError that names what is wrong. */
export function readConfig(flags: Flags, variables: Environment): Config {
  // A variable that is set to nothing counts as one that is not set.
  const environment = Object.fromEntries(
    Object.entries(variables).filter(([, value]) => value !== ''),
  )
  const file = readFile(flags.config)
  const port = flags.port ?? environment.TOLLBASE_PORT ?? String(file.port ?? 9092)
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)
    throw new ConfigError(`--port must be 0 to 65535, not ${port}`)
  const devnet = flags.devnet ?? false
  const blobBytesMax =
    file.blob_mb_max === undefined ? limits.blobBytesMax : file.blob_mb_max * 1024 * 1024
  return {
    host: flags.host ?? environment.TOLLBASE_HOST ?? file.host ?? '127.0.0.1',
    port: Number(port),
    dataDir: resolve(
      flags.dataDir ?? environment.TOLLBASE_DATA_DIR ?? file.data_dir ?? './tollbase-data',
    ),
    databaseUrl: readDatabaseUrl(
      flags.databaseUrl ?? environment.DATABASE_URL ?? file.database_url,
    ),
    operatorKey: readOperatorKey(flags.operatorKey ?? environment.TOLLBASE_OPERATOR_KEY),
    publicUrl: readPublicUrl(flags.publicUrl ?? file.public_url),
    serviceName: file.service_name,
    channels: file.channels ?? true,
    upto: file.upto ?? true,
    facilitator: file.facilitator && readFacilitator(file.facilitator),
    platformBasisPoints: BigInt(Math.round((file.platform_percentage ?? 20) * 100)),
    devnet,
    afterRestore: flags.afterRestore ?? false,
    logLevel: readLogLevel(flags.logLevel ?? environment.TOLLBASE_LOG_LEVEL ?? file.log_level),
    logFormat: readLogFormat(flags.logFormat ?? environment.TOLLBASE_LOG_FORMAT ?? file.log_format),
    accessLog: file.access_log ?? true,
    rateLimits: readRateLimits(file.rate_limits),
    registration: file.registration ?? (devnet ? 'open' : 'operator'),
    quota: readQuota(file.quota),
    trustProxy: readProxies(file.trust_proxy ?? []),
    drainMs: (file.drain_seconds ?? 8) * 1000,
    blobBytesMax,
    blobStore: file.blob_store && readBucket(file.blob_store, { environment, blobBytesMax }),
    resultCacheBytes: (file.kept_answers_mb ?? 32) * 1024 * 1024,
    retentionPrice: BigInt(file.retention_price_per_gb_month ?? '0'),
    storageFees: readStorageFees(file),
    encryptionUpdatePrice: BigInt(file.encryption_update_price ?? encryptionUpdatePriceDefault),
    masterKeys: readMasterKeys(environment.TOLLBASE_MASTER_KEY),
    keyCommand: readKeyCommand(file.encryption_key_command),
    dataSets: readDataSets(file.data_sets ?? []),
    networks: readNetworks(file.networks ?? []),
    anchors: file.anchors ?? [],
    publishers: file.publishers ?? [],
    witnesses: file.witnesses ?? [],
    allowedUpstreams: readAllowedHosts([
      ...(file.allowed_upstreams ?? []),
      ...(flags.allowUpstream ?? []),
    ]),
  }
}

/** Reads the bucket of blobs; its credentials have the names that other programs know. */
function readBucket(
  given: NonNullable<ConfigFile['blob_store']>,
  { environment, blobBytesMax }: { environment: Environment; blobBytesMax: number },
): S3Bucket {
  const { AWS_ACCESS_KEY_ID: accessKeyId = '', AWS_SECRET_ACCESS_KEY: secretAccessKey = '' } =
    environment
  if (accessKeyId === '' || secretAccessKey === '')
    throw new ConfigError(
      'blob_store needs the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    )
  // A blob whose collection becomes encrypted later is larger then.
  if (computeSealedSize(blobBytesMax) > s3ObjectBytesMax) {
    const mebibytesMax = Math.floor(s3ObjectBytesMax / computeSealedSize(1024 ** 2))
    throw new ConfigError(
      `blob_mb_max: with blob_store it is at most ${mebibytesMax}, as S3 takes no more bytes at once, and an encrypted blob has some more`,
    )
  }
  const { endpoint, region = 'us-east-1', bucket, prefix = '', path_style: isPathStyle } = given
  return {
    ...{ endpoint, region, bucket, accessKeyId, secretAccessKey },
    prefix: prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`,
    isPathStyle: isPathStyle ?? true,
  }
}

function readStorageFees({
  storage_fees: fees,
  retention_price_per_gb_month: price = '0',
}: ConfigFile): Config['storageFees'] {
  if (fees === undefined) return undefined
  if (price === '0')
    throw new ConfigError('storage_fees needs retention_price_per_gb_month, the price')
  return { price: BigInt(price), freeBytes: BigInt(fees.free_bytes ?? 2 ** 30) }
}

/** A tenth of a cent. */
const encryptionUpdatePriceDefault = '1000'

function readMasterKeys(text: string | undefined): string | undefined {
  if (text === undefined || text.trim() === '') return undefined
  parseMasterKeys(text, 'TOLLBASE_MASTER_KEY')
  return text
}

function readFile(path: string | undefined): ConfigFile {
  if (path === undefined && !existsSync(configFileDefault)) return {}
  const chosen = path ?? configFileDefault
  let text: string
  try {
    text = readFileSync(chosen, 'utf8')
  } catch (error) {
    throw new ConfigError(`--config ${chosen} cannot be read: ${explainReadError(error)}`)
  }
  return parseConfigFile(text, chosen)
}

function readAllowedHosts(texts: readonly string[]): readonly AllowedHost[] {
  return texts.map((text) => {
    const host = parseAllowedHost(text)
    if (host === undefined)
      throw new ConfigError(`--allow-upstream must be a host or host:port, not ${text}`)
    return host
  })
}

function readPublicUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new ConfigError(
      `--public-url must be a URL of http or https, such as https://shop.example, not ${text}`,
    )
  if (/[?#]/.test(text))
    throw new ConfigError(
      `--public-url must end before ? and #, since paths are added to it: ${url.origin}${url.pathname.replace(/\/+$/, '')}`,
    )
  return text.replace(/\/+$/, '')
}

function readDataSets(sets: Config['dataSets']): Config['dataSets'] {
  sets.forEach(({ name, kind }, at) => {
    const before = sets.slice(0, at)
    if (before.some((one) => one.name === name))
      throw new ConfigError(`data_sets[${at}].name is that of another data set, ${name}`)
    if (kind === 'ip_country' && before.some((one) => one.kind === kind))
      throw new ConfigError(`data_sets[${at}].kind: there may be one data set of ip_country`)
  })
  return sets
}

const proxyGroups = ['loopback', 'linklocal', 'uniquelocal']

function readProxies(proxies: readonly string[]): readonly string[] {
  proxies.forEach((proxy, at) => {
    if (!proxyGroups.includes(proxy) && !isNetwork(proxy)) {
      throw new ConfigError(
        `trust_proxy[${at}] must be an address, a network such as 10.0.0.0/8, or one of ${proxyGroups.join(', ')}`,
      )
    }
  })
  return proxies
}

function isNetwork(text: string): boolean {
  const [address = '', bits, more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more !== undefined) return false
  if (bits === undefined) return true
  return /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)
}

function readOperatorKey(key: string | undefined): string | undefined {
  if (key !== undefined && !/^[!-~]{16,}$/.test(key))
    throw new ConfigError(
      '--operator-key (TOLLBASE_OPERATOR_KEY) must have at least 16 characters, of letters, digits and signs of ASCII: a header carries no others, and a space would end it',
    )
  return key
}

function readLogLevel(level: string | undefined): LogLevel {
  const known = logLevels.find((one) => one === (level ?? 'info'))
  if (known === undefined)
    throw new ConfigError(`--log-level must be one of ${logLevels.join(', ')}, not ${level}`)
  return known
}

function readLogFormat(format: string | undefined): LogFormat | undefined {
  if (format === undefined) return undefined
  const known = logFormats.find((one) => one === format)
  if (known === undefined)
    throw new ConfigError(`--log-format must be ${logFormats.join(' or ')}, not ${format}`)
  return known
}
