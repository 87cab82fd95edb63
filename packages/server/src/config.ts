import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import {
  ConfigError,
  type ConfigFile,
  type LogLevel,
  logLevels,
  parseConfigFile,
} from './config-file.ts'

/** What the command line may say; each wins over its environment variable, which wins over the file. */
export type Flags = {
  readonly host?: string
  readonly port?: string
  readonly dataDir?: string
  readonly databaseUrl?: string
  readonly operatorKey?: string
  readonly publicUrl?: string
  readonly config?: string
  readonly devnet?: boolean
  readonly logLevel?: string
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
  readonly devnet: boolean
  readonly logLevel: LogLevel
  readonly networks: NonNullable<ConfigFile['networks']>
}

type Environment = Readonly<Record<string, string | undefined>>

const configFileDefault = 'tollbase.config.json'

/** The configuration of a run. Throws a ConfigError that names what is wrong. */
export function readConfig(flags: Flags, environment: Environment): Config {
  const file = readFile(flags.config)
  const port = flags.port ?? environment.TOLLBASE_PORT ?? String(file.port ?? 9092)
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)
    throw new ConfigError(`--port must be 0 to 65535, not ${port}`)
  return {
    host: flags.host ?? environment.TOLLBASE_HOST ?? file.host ?? '127.0.0.1',
    port: Number(port),
    dataDir: resolve(
      flags.dataDir ?? environment.TOLLBASE_DATA_DIR ?? file.data_dir ?? './tollbase-data',
    ),
    databaseUrl: flags.databaseUrl ?? environment.DATABASE_URL ?? file.database_url,
    operatorKey: readOperatorKey(flags.operatorKey ?? environment.TOLLBASE_OPERATOR_KEY),
    publicUrl: (flags.publicUrl ?? file.public_url)?.replace(/\/+$/, ''),
    serviceName: file.service_name,
    platformBasisPoints: BigInt(Math.round((file.platform_percentage ?? 20) * 100)),
    devnet: flags.devnet ?? false,
    logLevel: readLogLevel(flags.logLevel ?? environment.TOLLBASE_LOG_LEVEL ?? file.log_level),
    networks: file.networks ?? [],
  }
}

function readFile(path: string | undefined): ConfigFile {
  if (path === undefined && !existsSync(configFileDefault)) return {}
  const chosen = path ?? configFileDefault
  let text: string
  try {
    text = readFileSync(chosen, 'utf8')
  } catch (error) {
    throw new ConfigError(
      `--config ${chosen} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  return parseConfigFile(text, chosen)
}

function readOperatorKey(key: string | undefined): string | undefined {
  if (key !== undefined && key.length < 16)
    throw new ConfigError('the operator key must have at least 16 characters')
  return key
}

function readLogLevel(level: string | undefined): LogLevel {
  const known = logLevels.find((one) => one === (level ?? 'info'))
  if (known === undefined)
    throw new ConfigError(`--log-level must be one of ${logLevels.join(', ')}, not ${level}`)
  return known
}
