/* SPDX-License-Identifier: BSD-2-Clause */
/* What "verbena advise" says about each run. */
import { element } from './dom.js';
import { axisValue, value } from './format.js';

function evidence(one) {
    return `${one.experiment}, ${one.series}: ${one.axis} ${axisValue(one.x, one.axis === 'size' ? 'B' : '')}, ` +
        `${one.quantity} ${value(one.value)} ${one.unit}`;
}

function finding(one) {
    return element('article', { class: 'finding' },
                   element('h3', {}, one.question), element('p', {}, one.advice),
                   element('details', {}, element('summary', {}, 'Evidence'),
                           element('ul', { class: 'small' },
                                   one.evidence.map(row => element('li', {}, evidence(row))))));
}

export function findings(data) {
    const runs = data.runs.filter(run => run.advice.length);
    if (!runs.length)
        return null;
    return { title: 'Advice', id: 'advice', node: element('div', {}, runs.map(run => element('div', {},
        data.runs.length > 1 && element('p', { class: 'muted' }, run.label), run.advice.map(finding)))) };
}
