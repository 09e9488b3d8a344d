"""The local web page: sources, jobs and results behind ``hamflow serve``, and the page itself."""
