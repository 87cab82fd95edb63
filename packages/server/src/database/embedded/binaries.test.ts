import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  unlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findBinaries, findBundled } from './binaries.ts'
import { chooseServerUser } from './server-user.ts'
import { spawnTestProcess } from './test-process.ts'

const bundled = findBundled() ?? 'missing'
const debianFolder = '/usr/lib/postgresql/15/bin'
let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'binaries-test-'))
  chmodSync(root, 0o755)
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

/** Makes an installation as `npm install --ignore-scripts` leaves it: no links, no execute bits. */
function bareInstallation(): string {
  const native = join(root, 'native')
  cpSync(bundled, native, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('.a'),
  })
  cpSync(join(dirname(bundled), 'package.json'), join(root, 'package.json'))
  for (const name of readdirSync(join(native, 'lib'))) {
    if (lstatSync(join(native, 'lib', name)).isSymbolicLink()) unlinkSync(join(native, 'lib', name))
  }
  for (const name of readdirSync(join(native, 'bin'))) chmodSync(join(native, 'bin', name), 0o644)
  return native
}

test('the bundled programs come first, an explicit folder before all', async () => {
  const user = await chooseServerUser()
  const copyPrefix = join(root, 'copy')
  expect(await findBinaries({ copyPrefix, user })).toEqual({
    folder: join(bundled, 'bin'),
    major: 18,
  })
  if (existsSync(debianFolder)) {
    expect(await findBinaries({ copyPrefix, user, explicit: debianFolder })).toEqual({
      folder: debianFolder,
      major: 15,
    })
  }
  expect(existsSync(copyPrefix)).toBe(false)
})

test('an explicit folder without the programs is refused, not searched around', async () => {
  const user = await chooseServerUser()
  await expect(
    findBinaries({ copyPrefix: join(root, 'copy'), user, explicit: root }),
  ).rejects.toThrow(`${root}: has no postgres`)
})

test('an installation without install scripts is repaired where it stands', async () => {
  const native = bareInstallation()
  const user = await chooseServerUser()
  const found = await findBinaries({ copyPrefix: join(root, 'copy'), user, bundledFolder: native })
  expect(found).toEqual({ folder: join(native, 'bin'), major: 18 })
})

test('programs of another platform are passed over for the next ones', async () => {
  const native = bareInstallation()
  rmSync(join(native, 'lib'), { recursive: true })
  mkdirSync(join(native, 'lib'))
  rmSync(join(native, 'pg-symlinks.json'))
  const search = findBinaries({
    copyPrefix: join(root, 'copy'),
    user: await chooseServerUser(),
    bundledFolder: native,
  })
  if (existsSync(debianFolder)) expect(await search).toEqual({ folder: debianFolder, major: 15 })
  else await expect(search).rejects.toThrow(/no PostgreSQL was found/)
})

test.runIf(process.getuid?.() === 0)(
  'a read-only installation is repaired in a copy, made once',
  async () => {
    const native = bareInstallation()
    const copyPrefix = join(root, 'writable', 'copy')
    mkdirSync(join(root, 'writable'))
    chmodSync(join(root, 'writable'), 0o777)
    const program = `
    const [{ chooseServerUser }, { findBinaries }] = await load('server-user.ts', 'binaries.ts')
    process.setgid(65534)
    process.setuid(65534)
    const search = { copyPrefix: ${JSON.stringify(copyPrefix)}, user: await chooseServerUser(), bundledFolder: ${JSON.stringify(native)} }
    report([await findBinaries(search), await findBinaries(search)])`
    const version = (
      JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    ).version
    const child = await spawnTestProcess(program)
    const copy = { folder: `${copyPrefix}-${version}/bin`, major: 18 }
    expect(child.reported).toEqual([copy, copy])
    await child.kill()
  },
)
