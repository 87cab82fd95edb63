import { app } from './place.ts'

export const viewsTotal = 50

/** Makes the query of view number `at`; the kinds come in turn. */
export const perKind: readonly ((at: number) => string)[] = [
  (at) =>
    `SELECT "group", count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM ${app}::items WHERE amount <> ${at} GROUP BY "group"`,
  (at) => `SELECT id, amount FROM ${app}::items WHERE amount > ${900 + at}`,
  (at) =>
    `SELECT kind, min(amount) AS least, max(amount) AS most FROM ${app}::items WHERE amount <> ${at} GROUP BY kind`,
  (at) =>
    `SELECT i.id, i.amount, p.rent FROM ${app}::items i JOIN ${app}::places p ON i.place = p.place WHERE i.amount < ${20 + at}`,
  (at) => `SELECT id, amount FROM ${app}::items ORDER BY amount DESC LIMIT ${10 + at}`,
]
