// Adds to package-lock.json the optional packages of other platforms that a registry does not offer: npm leaves
// them out, and `npm ci` then calls the lock out of sync. Run it after each `npm install` that changes the lock.
import { readFileSync, writeFileSync } from 'node:fs'

const systems = [
  'android',
  'darwin',
  'freebsd',
  'linux',
  'win32',
  'openharmony',
  'netbsd',
  'openbsd',
  'sunos',
  'aix',
]
const processors = [
  'arm64',
  'x64',
  'ia32',
  'arm',
  'ppc64',
  's390x',
  'riscv64',
  'loong64',
  'mips64el',
  'wasm32',
]
const otherNames = { windows: 'win32', amd64: 'x64', aarch64: 'arm64', armv7: 'arm', gnu: 'glibc' }

const file = process.argv[2] ?? 'package-lock.json'
const lock = JSON.parse(readFileSync(file, 'utf8'))
const added = []
for (const [path, entry] of Object.entries({ ...lock.packages })) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    if (isLocked(path, name) || !/^\d+\.\d+\.\d+[\w.+-]*$/.test(version)) continue
    lock.packages[`node_modules/${name}`] = lockEntry(name, version, entry.dev)
    added.push(`${name}@${version}`)
  }
}
const [root, ...rest] = Object.entries(lock.packages)
lock.packages = Object.fromEntries([root, ...rest.sort(([a], [b]) => (a < b ? -1 : 1))])
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
console.log(added.length === 0 ? 'the lock is complete' : added.join('\n'))

function isLocked(path, name) {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf('node_modules/') - 1))) {
    if (lock.packages[`${at === '' ? '' : `${at}/`}node_modules/${name}`]) return true
    if (!at.includes('node_modules/')) return lock.packages[`node_modules/${name}`] !== undefined
  }
}

function lockEntry(name, version, dev) {
  const words = name
    .replace(/^@[^/]+\//, '')
    .split(/[-_.]/)
    .map((word) => otherNames[word] ?? word)
  const find = (known) => known.find((one) => words.includes(one))
  const os = find(systems)
  const cpu = find(processors)
  const libc = os === 'linux' ? find(['musl', 'glibc']) : undefined
  return {
    version,
    ...(cpu && { cpu: [cpu] }),
    ...(dev && { dev: true }),
    ...(libc && { libc: [libc] }),
    optional: true,
    ...(os && { os: [os] }),
  }
}
