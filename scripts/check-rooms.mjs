// Checks rooms.js: who may import whom. Exits 1 and names every import that breaks the table.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { cruise } from 'dependency-cruiser'
import * as table from '../rooms.js'

const rooms = table.rooms
/** name -> {may: domains that it may call, doors: files by which others enter it}; a bare list is `may`. */
const domains = Object.fromEntries(
  Object.entries(table.domains ?? {}).map(([name, domain]) => [
    name,
    Array.isArray(domain) ? { may: domain, doors: [name] } : { doors: [name], ...domain },
  ]),
)
const testFile = '[.]test[.]ts$'
const roots = ['packages', 'tests', 'bench', 'scripts', 'bin', 'examples'].filter(isFolder)

const { output } = await cruise(roots, {
  validate: true,
  ruleSet: { forbidden: [...roomRules(), ...domainRules(), ...houseRules()] },
  // TypeScript 7 has no API for dependency-cruiser: with its default parser it reads nothing and succeeds.
  parser: 'swc',
  doNotFollow: { path: 'node_modules' },
  exclude: { path: '(^|/)dist/' },
  enhancedResolveOptions: {
    exportsFields: ['exports'],
    conditionNames: ['import', 'node', 'default'],
  },
})

const files = roots.flatMap(sourceFiles)
const problems = [
  ...output.summary.violations.map(describeViolation),
  ...unreadFiles(files, output.modules),
  ...homelessFiles(files),
  ...domainTableProblems(),
]
for (const problem of problems) console.error(problem)
const edges = output.modules.reduce((sum, module) => sum + module.dependencies.length, 0)
console.log(`rooms: ${files.length} files, ${edges} imports, ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1

function roomRules() {
  return Object.entries(rooms).map(([name, room]) => ({
    name: `${name}-imports`,
    comment: `${name} may import ${room.may.join(', ') || 'no other room'} (rooms.js)`,
    severity: 'error',
    from: { path: inRoom(room), pathNot: testFile },
    to: {
      path: '^(packages|tests|bench|scripts|bin|examples)/',
      pathNot: [...[name, ...room.may].map((other) => inRoom(rooms[other])), 'node_modules/'],
    },
  }))
}

/** A domain is entered only by its doors (by default the file that bears its name), and only along a listed edge. */
function domainRules() {
  return domainNames().flatMap((name) => {
    const folder = `^${rooms.domains.path}/${name}/`
    const { may, doors } = domains[name] ?? { may: [], doors: [name] }
    return [
      {
        name: `${name}-front-door`,
        comment: `${name} is entered by ${doors.map((door) => `${door}.ts`).join(', ')}`,
        severity: 'error',
        // domains/*.ts puts the operations together, so it sees them all.
        from: {
          path: '^packages/',
          pathNot: [folder, testFile, `^${rooms.domains.path}/[^/]+[.]ts$`],
        },
        to: { path: folder, pathNot: `${folder}(${doors.join('|')})[.]ts$` },
      },
      {
        name: `${name}-domain-edges`,
        comment: `${name} may call ${may.join(', ') || 'no other domain'} (rooms.js)`,
        severity: 'error',
        from: { path: folder, pathNot: testFile },
        to: {
          path: `^${rooms.domains.path}/[^/]+/`,
          pathNot: [name, ...may].map((other) => `^${rooms.domains.path}/${other}/`),
        },
      },
    ]
  })
}

function houseRules() {
  return [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-unresolved',
      severity: 'error',
      // The packages of a peer are installed when a benchmark asks for it.
      from: { pathNot: '^bench/peers/[^/]+/' },
      to: { couldNotResolve: true },
    },
    { name: 'no-test-imports', severity: 'error', from: {}, to: { path: testFile } },
  ]
}

function describeViolation({ rule, from, to, comment, cycle }) {
  const way = cycle ? [from, ...cycle.map((step) => step.name)].join(' -> ') : `${from} -> ${to}`
  return `${rule.name}: ${way}${comment ? ` (${comment})` : ''}`
}

/** A checker that silently read nothing must not pass. */
function unreadFiles(onDisk, modules) {
  const read = new Set(modules.map((module) => module.source))
  const seen = modules.some((module) => module.dependencies.length > 0)
  return [
    ...onDisk.filter((file) => !read.has(file)).map((file) => `not-read: ${file}`),
    ...(seen ? [] : ['not-read: no import was seen in any file']),
  ]
}

function homelessFiles(onDisk) {
  const homes = Object.values(rooms).map((room) => new RegExp(inRoom(room)))
  return onDisk
    .filter((file) => file.startsWith('packages/') && !homes.some((home) => home.test(file)))
    .map((file) => `no-room: ${file} belongs to no room of rooms.js`)
}

function domainTableProblems() {
  const names = domainNames()
  const unknown = Object.entries(domains)
    .flatMap(([name, { may }]) => [name, ...may])
    .filter((name) => !names.includes(name))
    .map((name) => `domain-unknown: ${name} is in rooms.js but not a folder`)
  const circular = Object.keys(domains)
    .filter((name) => reachable(name).has(name))
    .map((name) => `domain-cycle: ${name} reaches itself in rooms.js`)
  return [...new Set(unknown), ...circular]
}

function reachable(name) {
  const found = new Set()
  const next = [...(domains[name]?.may ?? [])]
  for (let other = next.pop(); other !== undefined; other = next.pop()) {
    if (found.has(other)) continue
    found.add(other)
    next.push(...(domains[other]?.may ?? []))
  }
  return found
}

function domainNames() {
  return isFolder(rooms.domains.path) ? foldersOf(rooms.domains.path) : []
}

/** A room is a folder, or the files whose path begins so. */
function inRoom(room) {
  return `^${room.path}(/|[^/]*[.]tsx?$)`
}

function sourceFiles(root) {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /[.](ts|tsx|js|mjs)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !/(^|\/)(dist|node_modules)\//.test(file))
}

function foldersOf(path) {
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
}

function isFolder(path) {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
