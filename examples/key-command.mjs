// Wraps and unwraps data keys of encrypted collections by a key of its own: the smallest program that
// encryption_key_command can name. It stands for a key manager, which would keep the key out of this machine.
//
//   node examples/key-command.mjs <key file> wrap|unwrap < request.json
//
// The key file has 32 bytes in base64:  (umask 077; openssl rand -base64 32 > manager-key)
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'

// An error is told in one line.
process.on('uncaughtException', ({ message }) => {
  console.error(message)
  process.exit(1)
})

const [keyFile, operation] = process.argv.slice(2)
if (keyFile === undefined || !['wrap', 'unwrap'].includes(operation)) {
  console.error('usage: node examples/key-command.mjs <key file> wrap|unwrap < request.json')
  process.exit(1)
}
const key = Buffer.from(readFileSync(keyFile, 'utf8'), 'base64')
const request = JSON.parse(readFileSync(0, 'utf8'))

// The context says whose key it is; bound to the wrapped key, it keeps keys from being exchanged.
const context = Buffer.from(request.context)

if (operation === 'wrap') {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(context)
  const sealed = cipher.update(Buffer.from(request.key, 'base64'))
  const wrapped = Buffer.concat([nonce, sealed, cipher.final(), cipher.getAuthTag()])
  console.log(JSON.stringify({ wrapped: wrapped.toString('base64') }))
} else {
  const wrapped = Buffer.from(request.wrapped, 'base64')
  const cipher = createDecipheriv('aes-256-gcm', key, wrapped.subarray(0, 12)).setAAD(context)
  cipher.setAuthTag(wrapped.subarray(-16))
  const opened = Buffer.concat([cipher.update(wrapped.subarray(12, -16)), cipher.final()])
  console.log(JSON.stringify({ key: opened.toString('base64') }))
}
