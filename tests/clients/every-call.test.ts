import { readdirSync, readFileSync } from 'node:fs'
import {
  BatchOperations,
  DatabaseManager,
  OnChainDB,
  OnChainDBClient,
  QueryBuilder,
} from '@onchaindb/sdk'
import { expect, test } from 'vitest'

const tests = readdirSync(import.meta.dirname)
  .filter((file) => /^sdk.*\.ts$/.test(file))
  .map((file) => readFileSync(`${import.meta.dirname}/${file}`, 'utf8'))
  .join('\n')

/** The parts that are of no use to an application: private methods, and setters that make no request. */
const inner: Readonly<Record<string, readonly string[]>> = {
  OnChainDBClient: [
    'buildRoot',
    'getDefaultIndexType',
    'handleHttpError',
    'resolveRoot',
    'sleep',
    'validateStoreRequest',
    // `store` calls it where a 402 comes.
    'handleX402',
    // It reads from a node of another chain, never from this service; waitForBatchConfirmation calls it.
    'waitForConfirmation',
  ],
  DatabaseManager: ['getHeaders', 'updateConfig'],
  BatchOperations: ['sleep'],
  QueryBuilder: [
    '_addServerJoin',
    'buildQueryValue',
    'buildRawQuery',
    'executeSimpleQuery',
    'executeWithJoins',
    'getQueryRequest',
    // It pays with a transfer that the application made itself.
    'executeWithPayment',
    'withFieldMap',
    'withHttpClient',
    'withServerUrl',
  ],
  OnChainDB: [],
}

test.each([
  ['OnChainDBClient', OnChainDBClient.prototype],
  ['DatabaseManager', DatabaseManager.prototype],
  ['BatchOperations', BatchOperations.prototype],
  ['QueryBuilder', QueryBuilder.prototype],
  ['OnChainDB', OnChainDB],
])('every call of %s is made against a real service', (name, methods) => {
  const own = Object.getOwnPropertyNames(methods).filter(
    (method) => typeof Object.getOwnPropertyDescriptor(methods, method)?.value === 'function',
  )
  const calls = own.filter((method) => method !== 'constructor' && !inner[name]?.includes(method))
  expect(calls.length).toBeGreaterThan(2)
  expect(
    calls.filter((method) => !tests.includes(`.${method}(`) && !tests.includes(`.${method}<`)),
  ).toEqual([])
})
