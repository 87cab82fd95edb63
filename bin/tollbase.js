#!/usr/bin/env -S node --max-semi-space-size=32
const [major, minor] = process.versions.node.split('.').map(Number)
if (major > 20 || (major === 20 && minor >= 19)) {
  void import('../dist/program.js')
} else {
  console.error(`tollbase: needs Node.js 20.19 or newer; this is ${process.versions.node}`)
  process.exitCode = 2
}
