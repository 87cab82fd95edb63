import { execFile } from 'node:child_process'
import { chmodSync, chownSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSetupError } from '../errors.ts'
import { readText } from './process-info.ts'

/**
 * The user that the server runs as. PostgreSQL refuses root, so root either enters a user namespace, where it
 * counts as nobody while files stay root's, or gives the server and its files to another account.
 */
export type ServerUser =
  | { readonly kind: 'self' }
  | { readonly kind: 'namespace' }
  | { readonly kind: 'account'; readonly name: string; readonly uid: number; readonly gid: number }

export type Command = readonly [string, ...string[]]

export type CommandResult = {
  readonly ok: boolean
  /** Both streams, for error texts. */
  readonly output: string
}

const namespacePrefix = ['unshare', '--user', '--map-user=65534', '--map-group=65534'] as const
const accountNames = ['postgres', 'nobody']
const probeTimeoutMs = 10_000

/** Chooses the user; `avoid` leaves namespaces out, as on systems that forbid them. */
export async function chooseServerUser(avoid?: 'namespace'): Promise<ServerUser> {
  if (process.getuid?.() !== 0) return { kind: 'self' }
  const namespace: ServerUser = { kind: 'namespace' }
  if (avoid === undefined && (await runAs(namespace, ['true'], probeTimeoutMs)).ok) return namespace
  const account = findAccount()
  if (account !== undefined) return account
  throw new DatabaseSetupError(
    'PostgreSQL does not run as root, user namespaces are not allowed here, and there is no account ' +
      `${accountNames.join(' or ')}; start the service as another user`,
  )
}

/** Builds the arguments to spawn a command as that user; the folder is one that every account may enter. */
export function makeSpawnArguments(user: ServerUser, command: Command) {
  const [file, ...args] =
    user.kind === 'namespace' ? ([...namespacePrefix, ...command] as const) : command
  const identity = user.kind === 'account' ? { uid: user.uid, gid: user.gid } : {}
  return { file, args, options: { cwd: '/', ...identity } }
}

export function runAs(
  user: ServerUser,
  command: Command,
  timeoutMs: number,
): Promise<CommandResult> {
  const { file, args, options } = makeSpawnArguments(user, command)
  return new Promise((resolve) => {
    execFile(
      file,
      args,
      { ...options, timeout: timeoutMs, killSignal: 'SIGKILL' },
      (error, stdout, stderr) => {
        const problem = error === null ? '' : `\n${error.message}`
        resolve({ ok: error === null, output: `${stdout}${stderr}${problem}`.trim() })
      },
    )
  })
}

/** Gives the file or folder, with everything in it, to the server's user. */
export function giveTo(user: ServerUser, path: string): void {
  if (user.kind !== 'account') return
  const found = lstatSync(path)
  if (found.isSymbolicLink()) return
  if (found.isDirectory()) for (const name of readdirSync(path)) giveTo(user, join(path, name))
  if (found.uid !== user.uid) chownSync(path, user.uid, user.gid)
}

/** Makes sure that the server can pass through the data folder to its own one inside. */
export async function ensureFolderAccess(user: ServerUser, folder: string): Promise<void> {
  if (user.kind !== 'account') return
  if (!(await canEnter(user, folder))) chmodSync(folder, (lstatSync(folder).mode & 0o777) | 0o011)
  if (await canEnter(user, folder)) return
  throw new DatabaseSetupError(
    `PostgreSQL does not run as root, and the account ${user.name} cannot enter ${folder}; choose a data folder ` +
      'that lies in folders which others may enter (mode 711), or start the service as another user',
  )
}

async function canEnter(user: ServerUser, folder: string): Promise<boolean> {
  return (await runAs(user, ['test', '-x', folder], probeTimeoutMs)).ok
}

function findAccount(): ServerUser | undefined {
  const accounts = (readText('/etc/passwd') ?? '').split('\n').map((line) => line.split(':'))
  for (const name of accountNames) {
    const [, , uid, gid] = accounts.find((account) => account[0] === name) ?? []
    if (uid !== undefined && gid !== undefined)
      return { kind: 'account', name, uid: Number(uid), gid: Number(gid) }
  }
  return undefined
}
