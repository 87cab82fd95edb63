import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SetupError } from '../base/setup-error.ts'
import { openDatabase } from '../database/database.ts'
import { createTestDatabase, type TestDatabase } from '../database/testing.ts'
import { explainConnecting } from './explain-connecting.ts'

let made: TestDatabase
let other: Server
beforeAll(async () => {
  made = await createTestDatabase()
  other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
})
afterAll(async () => {
  other.close()
  await made.drop()
})

async function explain(url: string): Promise<string> {
  const error: unknown = await explainConnecting(
    url,
    openDatabase({ connection: { url }, poolSize: 1 }),
  ).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(SetupError)
  return error instanceof SetupError ? error.message : ''
}

function getPort(): number {
  const address = other.address()
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}

test('a server that cannot be reached, or refuses, is told in one line that says what to do, and never the password', async () => {
  const { host, port, user } = made.connection
  const socket = `host=${encodeURIComponent(host)}&port=${port}`
  const said = [
    await explain('postgresql://user:secret@127.0.0.1:1/shop'),
    await explain('postgresql://user:secret@nowhere.invalid/shop'),
    await explain('postgresql://user:secret@/shop?host=%2Fnowhere'),
    await explain(`postgresql://user:secret@127.0.0.1:${getPort()}/shop`),
    await explain(`postgresql://${user}:secret@/sh-op?${socket}`),
    await explain(`postgresql://nobody:secret@/shop?${socket}`),
    await explain(`postgresql://user:secret@127.0.0.1:1/shop?sslrootcert=%2Fnowhere.pem`),
  ]
  const expected = [
    '--database-url: no server listens at 127.0.0.1:1; start PostgreSQL there, or correct the URL: postgresql://',
    'there is no host of this name: nowhere.invalid:5432',
    'no server listens at /nowhere:5432',
    `the server at 127.0.0.1:${getPort()} cannot be reached, or is no PostgreSQL: `,
    `database "sh-op" does not exist. Make it: CREATE DATABASE "sh-op" TEMPLATE template0`,
    'role "nobody" does not exist. In the URL a password writes %40 for @',
    'the file /nowhere.pem cannot be read (ENOENT)',
  ]
  said.forEach((text, at) => {
    expect(text).toContain(expected[at])
    expect(text).not.toMatch(/\n|secret/)
  })
})
