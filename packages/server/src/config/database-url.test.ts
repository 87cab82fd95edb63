import { expect, test } from 'vitest'
import { readConfig } from './config.ts'
import { formatServer } from './database-url.ts'

const read = (databaseUrl: string) => readConfig({ databaseUrl }, {}).databaseUrl

test.each([
  'postgresql://user:secret@localhost:5432/shop',
  'postgres://user@localhost',
  'POSTGRESQL://user:p@ss@localhost:5432/shop',
  'postgresql://user:p%23ss@localhost:5432/shop?sslmode=verify-full&connect_timeout=3',
  'postgresql://user@[::1]:5432/shop',
  'postgresql://user@/shop?host=%2Frun%2Fpostgresql&port=5433',
  'postgresql://user@%2Frun%2Fpostgresql/shop',
])('a URL of a PostgreSQL server is taken as it is: %s', (url) => {
  expect(read(url)).toBe(url)
})

test.each([
  ['mysql://root:secret@localhost:3306/shop', 'not mysql://…'],
  ['http://localhost:5432/secret', 'not http://…'],
  ['localhost:5432/secret', 'must be the URL of a PostgreSQL server'],
  ['secret', 'must be the URL of a PostgreSQL server'],
  ['', 'must be the URL of a PostgreSQL server'],
  ['postgres//user:secret@localhost/shop', 'must be the URL of a PostgreSQL server'],
  ['jdbc:postgresql://localhost/secret', 'must be the URL of a PostgreSQL server'],
  ['postgresql://', 'names no host'],
  ['postgresql:///secret', 'names no host'],
  ['postgresql://user:secret@/shop', 'names no host'],
  ['postgresql://user:sec#ret@localhost:5432/shop', '%23 for #'],
  ['postgresql://user:sec/ret@localhost:5432/shop', '%2F for /'],
  ['postgresql://user:sec?ret@localhost:5432/shop', '%3F for ?'],
  ['postgresql://user:sec@t/ret@localhost:5432/shop', '%40 for @'],
  ['postgresql://user:secret@localhost:99999/shop', 'port'],
  ['postgresql://user:secret@localhost:0/shop', 'port'],
  ['postgresql://user:secret@localhost:abc/shop', 'port'],
  ['postgresql://user:secret@localhost/shop?port=abc', 'port'],
  ['postgresql://user:secret@localhost/shop?sslmode=requrie', 'sslmode must be one of disable'],
  ['postgresql://user:secret@localhost/shop?ssl_mode=require', 'the parameter ssl_mode'],
])(
  'what is no such URL is refused in one line that says what to write, and never the password: %s',
  (url, said) => {
    const refuse = () => read(url)
    expect(refuse).toThrow(said)
    expect(refuse).toThrow('--database-url (DATABASE_URL)')
    expect(refuse).not.toThrow(/\n|secret|sec.ret/)
  },
)

test('a variable of the environment that is set to nothing is not set', () => {
  const nothing = { DATABASE_URL: '', TOLLBASE_PORT: '', TOLLBASE_LOG_LEVEL: '' }
  expect(readConfig({}, nothing)).toEqual(readConfig({}, {}))
})

test('a server is named by its host and port', () => {
  expect(formatServer('postgresql://user:secret@localhost/shop')).toBe('localhost:5432')
  expect(formatServer('postgresql://user@/shop?host=%2Frun&port=1')).toBe('/run:1')
  expect(formatServer('postgresql://user@%2Frun:1/shop')).toBe('/run:1')
})
