import type { Data } from './data.ts'

/** The relation of orders to the people who gave them. */
export const owns = {
  parent_collection: 'people',
  parent_field: 'id',
  child_collection: 'orders',
  child_field: 'person.id',
}

/** Asks for that relation, with other members where they are given. */
export const relate = (app: Data, body: object = {}) =>
  app.call('POST', '/relations', { ...owns, ...body })
