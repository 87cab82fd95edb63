import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { noLog } from '../../base/log.ts'
import { realWorld } from '../../base/world.ts'
import type { DatabaseConnection } from '../connection.ts'
import { type Database, openDatabase, type Queryable } from '../database.ts'
import { isTransient } from '../errors.ts'
import { sql } from '../sql.ts'
import { listTestEngines, type TestEngine } from '../testing.ts'
import { findBinaries, findBundled } from './binaries.ts'
import { prepareCluster } from './cluster.ts'
import { isAlive, waitUntil } from './process-info.ts'
import {
  type EmbeddedOptions,
  type EmbeddedPostgres,
  type ServerExit,
  startEmbeddedPostgres,
} from './server.ts'
import { chooseServerUser } from './server-user.ts'
import { backendMemoryMbKept } from './settings.ts'
import { spawnTestProcess, type TestProcess } from './test-process.ts'

const isRoot = process.getuid?.() === 0
const nobody = 65534
const debianFolder = '/usr/lib/postgresql/15/bin'

const getBinaries = (engine: TestEngine) =>
  engine === 'debian15' ? { binaries: debianFolder } : {}

let dataDir: string
let running: EmbeddedPostgres[]
let children: TestProcess[]
let pools: Database[]
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'server-test-'))
  running = []
  children = []
  pools = []
})
afterEach(async () => {
  for (const pool of pools) await pool.close()
  for (const server of running) await server.stop()
  for (const child of children) await child.kill()
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 })
})

const start = async (options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedPostgres> => {
  const server = await startEmbeddedPostgres({
    dataDir,
    world: realWorld,
    log: noLog,
    ...options,
  })
  running.push(server)
  return server
}
/** New clusters by the folder of their programs. To make one is most of the work of a first start. */
const clusters = new Map<string | undefined, Promise<string>>()
const clustersDir = mkdtempSync(join(tmpdir(), 'server-test-clusters-'))
afterAll(() => rmSync(clustersDir, { recursive: true, force: true }))

/** Puts a new cluster into the data folder, for a test that is not about how one is made. */
const fill = async ({ binaries: explicit }: Pick<EmbeddedOptions, 'binaries'> = {}) => {
  const made = clusters.get(explicit) ?? makeCluster(explicit)
  clusters.set(explicit, made)
  cpSync(await made, join(dataDir, 'postgres'), { recursive: true, preserveTimestamps: true })
}
const makeCluster = async (explicit: string | undefined): Promise<string> => {
  const user = await chooseServerUser()
  const copyPrefix = join(clustersDir, 'programs')
  const binaries = await findBinaries({ ...(explicit && { explicit }), copyPrefix, user })
  const folder = join(clustersDir, String(binaries.major))
  await prepareCluster({ folder, binaries, user })
  return folder
}
/** Starts the server on a cluster that is there already. */
const startFilled = async (options: Partial<EmbeddedOptions> = {}) => {
  await fill(options)
  return start(options)
}
const connect = async (connection: DatabaseConnection): Promise<Database> => {
  const pool = await openDatabase({ connection, poolSize: 2 })
  pools.push(pool)
  return pool
}
const child = async (program: string): Promise<TestProcess> => {
  const started = await spawnTestProcess(program)
  children.push(started)
  return started
}
/** Starts the server on `folder` in another process, which reports its connection and process id. */
const startElsewhere = (folder: string, before = '', more = '') =>
  child(`
    const [{ startEmbeddedPostgres }, { realWorld }] = await load('server.ts', '../../base/world.ts')
    ${before}
    const log = { info() {}, warn() {}, error() {} }
    const server = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(folder)}, world: realWorld, log, ${more} })
    report({ pid: server.pid(), connection: server.connection })`)
type Elsewhere = { readonly pid: number; readonly connection: DatabaseConnection }

const retry = async <T>(work: () => Promise<T>): Promise<T> => {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isTransient(error)) throw error
      await realWorld.sleep(20)
    }
  }
}
const createNotes = (db: Database) =>
  db.execute(sql`CREATE TABLE public.note (k integer PRIMARY KEY)`)
const notes = async (db: Database) =>
  (await db.query<{ k: number }>(sql`SELECT k FROM public.note ORDER BY k`)).map((row) => row.k)

describe.each(listTestEngines())('an embedded server (%s)', (engine) => {
  const binaries = getBinaries(engine)
  const binariesText = engine === 'debian15' ? `binaries: ${JSON.stringify(debianFolder)}` : ''

  test('committed data are there after an orderly stop and a new start', async () => {
    const server = await start(binaries)
    expect(server.major).toBe(engine === 'debian15' ? 15 : 18)
    const db = await connect(server.connection)
    await createNotes(db)
    await db.execute(sql`INSERT INTO public.note VALUES (1)`)
    expect(
      await db.query(sql`SELECT current_setting('fsync') || current_setting('synchronous_commit')
      || current_setting('listen_addresses') AS settings`),
    ).toEqual([{ settings: 'onon' }])
    await db.close()
    const pid = server.pid()
    await server.stop()
    await server.stop()
    expect(isAlive(pid)).toBe(false)
    expect(existsSync(join(dataDir, 'lock'))).toBe(false)
    expect(await notes(await connect((await start(binaries)).connection))).toEqual([1])
  })

  test('a server is gone within a second when this process is killed with -9, and nothing acknowledged is lost', async () => {
    await fill(binaries)
    const elsewhere = await startElsewhere(dataDir, '', binariesText)
    const { pid, connection } = elsewhere.reported as Elsewhere
    const db = await connect(connection)
    await createNotes(db)
    await db.execute(sql`INSERT INTO public.note VALUES (1), (2)`)
    await elsewhere.kill()
    expect(await waitUntil(realWorld, 1_000, () => !isAlive(pid))).toBe(true)
    expect(await notes(await connect((await start(binaries)).connection))).toEqual([1, 2])
  })

  test('a server that is killed is reported, started again, and the pool finds it', async () => {
    const server = await startFilled(binaries)
    const exits: ServerExit[] = []
    server.onExit((exit) => exits.push(exit))
    const db = await connect(server.connection)
    await createNotes(db)
    await db.execute(sql`INSERT INTO public.note VALUES (1)`)
    const before = server.pid()
    process.kill(before, 'SIGKILL')
    expect(await waitUntil(realWorld, 15_000, () => server.pid() !== before)).toBe(true)
    expect(await retry(() => notes(db))).toEqual([1])
    expect(exits).toEqual([{ reason: 'killed by signal 9', restarting: true }])
  })

  test('one killed backend costs its statement, not the service', async () => {
    const server = await startFilled(binaries)
    const db = await connect(server.connection)
    const [row] = await db.query<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`)
    process.kill(row?.pid ?? 0, 'SIGKILL')
    expect(await retry(() => db.query(sql`SELECT 1 AS one`))).toEqual([{ one: 1 }])
    expect(isAlive(server.pid())).toBe(true)
  })

  test('data of another major version are refused, naming both', async () => {
    await fill(binaries)
    writeFileSync(join(dataDir, 'postgres', 'PG_VERSION'), '14\n')
    const major = engine === 'debian15' ? 15 : 18
    await expect(start(binaries)).rejects.toThrow(
      new RegExp(`made by PostgreSQL 14, but .* PostgreSQL ${major},`),
    )
  })

  test.runIf(isRoot)(
    'a server of root without user namespaces runs as another account',
    async () => {
      const server = await start({ ...binaries, avoid: 'namespace' })
      const owner = statSync(`/proc/${server.pid()}`).uid
      expect(owner).not.toBe(0)
      expect(statSync(join(dataDir, 'postgres')).uid).toBe(owner)
      expect(await (await connect(server.connection)).query(sql`SELECT 1 AS one`)).toEqual([
        { one: 1 },
      ])
    },
  )

  test.runIf(isRoot)('a server runs for a user who is not root', async () => {
    const native = join(dataDir, 'programs')
    if (engine === 'embedded')
      cpSync(dirname(findBundledBin()), native, { recursive: true, verbatimSymlinks: true })
    const folder = join(dataDir, 'data')
    mkdirSync(folder, { mode: 0o700 })
    chownSync(folder, nobody, nobody)
    chmodSync(dataDir, 0o755)
    const bin = engine === 'embedded' ? join(native, 'bin') : debianFolder
    const before = `process.setgid(${nobody}); process.setuid(${nobody})`
    const elsewhere = await startElsewhere(folder, before, `binaries: ${JSON.stringify(bin)}`)
    const { pid, connection } = elsewhere.reported as Elsewhere
    expect(statSync(`/proc/${pid}`).uid).toBe(nobody)
    expect(await (await connect(connection)).query(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }])
  })
})

test('a second process on the same data folder is refused, naming the folder and the first process', async () => {
  await fill()
  const elsewhere = await startElsewhere(dataDir)
  await expect(start()).rejects.toThrow(
    `the data folder ${dataDir} is in use by the process ${elsewhere.pid}`,
  )
})

test('a half-made cluster and stale files of dead processes are no obstacle', async () => {
  for (const name of ['postgres.init', 'postgres.init-x1Y2z3'])
    mkdirSync(join(dataDir, name, 'base'), { recursive: true })
  writeFileSync(join(dataDir, 'lock'), '4194303 1\n')
  await (await start()).stop()
  expect(readdirSync(dataDir).filter((name) => name.includes('init'))).toEqual([])
  const stale = ['4194303', join(dataDir, 'postgres'), '1', '5432', '', '', '1 1', 'ready   ', '']
  writeFileSync(join(dataDir, 'postgres', 'postmaster.pid'), stale.join('\n'), { mode: 0o600 })
  writeFileSync(join(dataDir, 'postgres.socket', '.s.PGSQL.5432'), '')
  await connect((await start()).connection)
})

test('a folder that holds something else is left alone', async () => {
  mkdirSync(join(dataDir, 'postgres'))
  writeFileSync(join(dataDir, 'postgres', 'letter.txt'), 'mine')
  await expect(start()).rejects.toThrow(/is not empty and holds no PostgreSQL data/)
  expect(readFileSync(join(dataDir, 'postgres', 'letter.txt'), 'utf8')).toBe('mine')
})

test('a long or strange data folder works: the socket moves where its path fits', async () => {
  const long = join(dataDir, `a "strange", folder's name é ${'x'.repeat(120)}`)
  const server = await start({ dataDir: long })
  const { host } = server.connection
  expect(dirname(host)).toBe(tmpdir())
  expect(statSync(host).mode & 0o777).toBe(0o700)
  expect(await (await connect(server.connection)).query(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }])
  await server.stop()
  chownSync(host, 12345, 12345)
  if (isRoot)
    await expect(start({ dataDir: long })).rejects.toThrow(`${host} belongs to another user`)
  rmSync(host, { recursive: true })
})

test('a server that cannot start says what it wrote to its log, and frees the folder', async () => {
  await fill()
  writeFileSync(join(dataDir, 'postgres', 'postgresql.auto.conf'), 'no_such_setting = 1\n')
  await expect(start()).rejects.toThrow(/PostgreSQL did not start[\s\S]*no_such_setting/)
  writeFileSync(join(dataDir, 'postgres', 'postgresql.auto.conf'), '')
  await start()
})

test('a killed guardian does not leave two servers or none', async () => {
  const server = await startFilled()
  const before = server.pid()
  const status = readFileSync(`/proc/${before}/status`, 'utf8')
  process.kill(Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]), 'SIGKILL')
  expect(await waitUntil(realWorld, 20_000, () => server.pid() !== before)).toBe(true)
  expect(isAlive(before)).toBe(false)
  expect(await (await connect(server.connection)).query(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }])
})

test('a server that keeps dying is given up after a bounded number of restarts', async () => {
  const server = await startFilled({ temporary: true })
  const exits: ServerExit[] = []
  server.onExit((exit) => exits.push(exit))
  while (exits.at(-1)?.restarting !== false) {
    const pid = server.pid()
    if (isAlive(pid)) process.kill(pid, 'SIGKILL')
    await realWorld.sleep(20)
  }
  expect(exits.map((exit) => exit.restarting)).toEqual([true, true, true, true, true, false])
})

test('the log is put aside when it has grown past its bound', async () => {
  writeFileSync(join(dataDir, 'postgres.log'), Buffer.alloc(10 * 1024 * 1024 + 1, 'x'))
  await startFilled()
  expect(statSync(join(dataDir, 'postgres.log')).size).toBeLessThan(10_000)
  expect(statSync(join(dataDir, 'postgres.log.1')).size).toBe(10 * 1024 * 1024 + 1)
})

test('a server runs in a strange folder, keeps failed statements out of the log, and survives a Ctrl-C that is meant for us', async () => {
  const strange = join(dataDir, 'a, "b" é')
  const server = await start({ dataDir: strange })
  expect(server.connection.host).toBe(join(strange, 'postgres.socket'))
  const db = await connect(server.connection)
  await expect(db.query(sql`SELECT ${'secret-value'}::int4`)).rejects.toMatchObject({
    code: '22P02',
  })
  expect(readFileSync(join(strange, 'postgres.log'), 'utf8')).not.toContain('secret')
  const session = (pid: number) =>
    execFileSync('ps', ['-o', 'sid=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  expect(session(server.pid())).not.toBe(session(process.pid))
})

function findBundledBin(): string {
  return join(findBundled() ?? 'missing', 'bin')
}

test.runIf(process.platform === 'linux')(
  'a statement that needs more memory than a session may have fails alone, and the session goes on',
  async () => {
    const { connection } = await startFilled({ temporary: true })
    const pool = await connect(connection)
    const session = () => sql`SELECT pg_backend_pid() AS pid, pg_postmaster_start_time() AS start`
    const work = async (tx: Queryable) => {
      const [before] = await tx.query(session())
      for (const text of [
        `SELECT repeat('x', 1000000000)`,
        `SELECT length(array_agg(repeat('x', 1000) || n)::text) FROM generate_series(1, 3000000) AS n`,
        `SELECT length(concat(a, a, a, a, a, a, a)) FROM (SELECT repeat('x', 100000000) AS a) AS one`,
      ]) {
        await tx.execute(sql`SAVEPOINT before_it`)
        await expect(tx.query(sql.compiled(text, []))).rejects.toMatchObject({ code: '53200' })
        await tx.execute(sql`ROLLBACK TO before_it`)
      }
      expect(await tx.query(session())).toEqual([before])
    }
    // To fill gigabytes may take a slow machine longer than a statement has.
    await pool.transaction(work, { statementTimeoutMs: 0 })
  },
)

test.runIf(process.platform === 'linux')(
  'a session keeps the memory of one answer for the next, and gives back what is more than its share',
  async () => {
    const { connection } = await startFilled({ temporary: true })
    const pool = await connect(connection)
    await pool.transaction(async (tx) => {
      const [session] = await tx.query<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`)
      const answer = (mb: number) =>
        tx.query(sql`SELECT length(repeat('x', ${mb * 1024 * 1024}::int4)) AS length`)
      // Pages that the system had to map, as its field 10 counts them.
      const countMapped = () => {
        const [, fields = ''] = readFileSync(`/proc/${session?.pid}/stat`, 'utf8').split(') ')
        return Number(fields.split(' ')[7])
      }
      const repeat = async (mb: number) => {
        await answer(mb)
        const before = countMapped()
        for (let n = 0; n < 5; n++) await answer(mb)
        return (countMapped() - before) / 5
      }
      const pagesPerMb = 256
      expect(await repeat(2)).toBeLessThan(pagesPerMb / 4)
      expect(await repeat(2 * backendMemoryMbKept)).toBeGreaterThan(
        backendMemoryMbKept * pagesPerMb,
      )
    })
  },
)
